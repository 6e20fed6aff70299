import { z } from 'zod'
import { toSeriesDueEnd } from '../../shared/buckets.ts'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import {
  countBuckets,
  HISTORY_START,
  INTERVAL_SECONDS,
  type Interval,
  type TimeRange,
  toBucketStart,
} from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Answer } from '../formats/formats.ts'
import type { SERIES_HEADERS } from '../http/headers.ts'
import { oneOf } from '../parameters/kinds.ts'
import { Problem } from '../problem/problem.ts'

const MOST_POINTS = 10_000

/** The optional parameters of a series, in addition to its range (docs/contract.md, section 8). */
export interface SeriesQuestion {
  readonly order?: 'asc' | 'desc' | undefined
  readonly interval?: Interval | undefined
  readonly points?: number | undefined
  readonly fill?: 'null' | undefined
}

/** The parameter `order`; each route has its own default. */
export const order = (usual: 'asc' | 'desc') =>
  oneOf(['asc', 'desc'], `Oldest first or newest first; \`${usual}\` when it is not given.`, 'desc').optional()

const fill = oneOf(
  ['null'],
  'A row for every due bucket of the range, with null values if nothing was observed.',
  'null',
).optional()

const POINTS_RULE = `must be a whole number, at least 2 and at most ${MOST_POINTS}`
const points = z
  .int(POINTS_RULE)
  .min(2, POINTS_RULE)
  .max(MOST_POINTS, POINTS_RULE)
  .optional()
  .meta({
    description: `Minimum number of points, at most ${MOST_POINTS}, instead of \`interval\`. Selects the coarsest interval with at least this number of points in the range, or else the finest. \`X-Series-Interval\` has the interval.`,
    examples: [100],
  })

/** The parameters of series with these intervals. The finest comes first and is the default. */
export const seriesParameters = (intervals: readonly [Interval, ...Interval[]], usual: 'asc' | 'desc') => ({
  interval: oneOf(intervals, `Length of a bucket; ${intervals[0]} when it is not given.`, '1d').optional(),
  points,
  order: order(usual),
  fill,
})

/** Like `seriesParameters`, for series with a required choice of interval, by `interval` or by `points`. */
export const chosenParameters = (intervals: readonly [Interval, ...Interval[]]) => ({
  interval: oneOf(intervals, 'Length of a bucket; required unless `points` is given.', '1d').optional(),
  points,
  order: order('asc'),
  fill,
})

/** @throws Problem `invalid_parameter` if both an interval and a number of points are given. */
export function checkInterval({ interval, points: count }: SeriesQuestion): void {
  if (interval === undefined || count === undefined) return
  const detail = 'points replaces interval: use one of them, for example points=100.'
  throw new Problem('invalid_parameter', detail, { param: 'points' })
}

/** @throws Problem `invalid_parameter` if filled buckets are requested before the start of the history. */
export function checkFill({ fill: mode, start }: SeriesQuestion & { readonly start: number }): void {
  if (mode === undefined || start >= Date.parse(HISTORY_START)) return
  throw new Problem('invalid_parameter', `With fill, start must not be before ${HISTORY_START}.`, { param: 'start' })
}

/** @throws Problem as `checkInterval`, and `missing_parameter` if neither is given. */
export function checkChosen(question: SeriesQuestion, intervals: readonly Interval[]): void {
  checkInterval(question)
  if (question.interval !== undefined || question.points !== undefined) return
  const detail = 'interval is required, or points instead of it.'
  throw new Problem('missing_parameter', detail, { param: 'interval', allowed: intervals })
}

/** Whether a series is requested in its default order and interval, without other options. */
export const isPlain = (question: SeriesQuestion, usual: 'asc' | 'desc', finest: Interval): boolean =>
  (question.order ?? usual) === usual &&
  (question.interval ?? finest) === finest &&
  question.points === undefined &&
  question.fill === undefined

/** The headers that describe a series answer. */
export const toSeriesHeaders = (
  interval: string,
  points: number,
  missing: number,
): Record<keyof typeof SERIES_HEADERS, string> => ({
  'X-Series-Interval': interval,
  'X-Series-Points': String(points),
  'X-Series-Missing': String(missing),
})

/** The JSON around the points of one entity. */
export interface Frame {
  readonly before: string
  readonly after: string
}

export const NO_FRAME: Frame = { before: '', after: '' }

/** The JSON around the points of a token, as the API returns it. */
export const toTokenFrame = ({ name, id }: { readonly name: string; readonly id: string }): Frame => ({
  before: `{"name":${JSON.stringify(name)},"id":"${id}","data":`,
  after: '}',
})

/** Puts a list of points as JSON into the frame of its owner. */
export function inFrame<A extends Answer>(answer: A, { before, after }: Frame): A {
  if ('body' in answer) {
    return { ...answer, body: Buffer.concat([Buffer.from(before), answer.body, Buffer.from(after)]) }
  }
  if ('assembled' in answer) throw new Error('an assembled answer has its frame')
  return {
    ...answer,
    digest: `${before} ${answer.digest}`,
    before: before + answer.before,
    after: answer.after + after,
  }
}

/** The range of a series: the complete buckets that start in it, from one grid time to another. */
export interface SeriesRange extends TimeRange {
  /** Whether it reaches up to now, so that buckets are added over time. */
  readonly open: boolean
}

/** @throws Problem `invalid_parameter` for a range that ends before it starts. */
export function checkRange({ start, end }: { start?: number | undefined; end?: number | undefined }): void {
  if (start === undefined || end === undefined || end >= start) return
  throw new Problem('invalid_parameter', 'end must not be before start.', { param: 'end' })
}

/** The first grid time at or after a time. */
const nextStart = (ms: number, interval: Interval) =>
  toBucketStart(ms - 1, interval) + INTERVAL_SECONDS[interval] * 1000

/** The start of the bucket after the one that contains a time. */
export const startAfter = (ms: number, interval: Interval) => nextStart(ms + 1, interval)

/**
 * The complete buckets with starts in [start, end) (docs/contract.md, section 4). Without an end, or with a future
 * one, the last is the current bucket.
 */
export function toSeriesRange(
  query: { start: number; end?: number | undefined; interval: Interval },
  now: number,
): SeriesRange {
  const { start, end = Number.POSITIVE_INFINITY, interval } = query
  const open = end > now
  return {
    from: nextStart(start, interval),
    to: open ? startAfter(now, interval) : nextStart(end, interval),
    open,
  }
}

/**
 * The next time at which a bucket of any interval begins: every grid time of a coarser interval is also one of the
 * finest.
 */
export function nextGridTime(now: number): number {
  return startAfter(now, '5m')
}

/** Number of points in a series answer; `early` are those in buckets that are not due. */
export interface PointCounts {
  readonly points: number
  readonly early: number
}

const rowCount = z.object({ rows: z.int() })

/**
 * Counts the rows that a statement selects.
 * @throws DataError `storage`
 */
export async function countRows(
  db: Database,
  { name, sql, params }: { name: string; sql: string; params: Readonly<Record<string, unknown>> },
): Promise<number> {
  const counted = `SELECT count() AS rows FROM (${sql})`
  const settings = { max_threads: 1 }
  const [row] = await db.rows({ name: `${name}-count`, sql: counted, params, settings, schema: rowCount })
  return row?.rows ?? 0
}

/** Number of due buckets without a point in a range; `due` is the end of the due buckets. */
export const countMissing = (
  { from, to }: TimeRange,
  interval: Interval,
  due: number,
  { points, early }: PointCounts,
): number => Math.max(0, countBuckets(from, Math.min(to, due), interval) - (points - early))

/** When the clock alone changes an answer over a range: while the range is open or has buckets that are not due. */
export const toExpiry = ({ open, to }: SeriesRange, due: number, now: number): { readonly expiresAt?: number } =>
  open || to > due ? { expiresAt: nextGridTime(now) } : {}

/**
 * Age, expiry and headers of a series answer. Buckets are counted up to the end of the range, or up to the last point
 * if `limit` cut the answer there.
 */
export function describeSeries(
  series: PointCounts & {
    readonly dataset: DatasetFacts
    readonly interval: Interval
    readonly range: SeriesRange
    readonly asOf: number | null
    readonly isCut?: boolean
  },
  now: number,
): { asOf: number | null; headers: Record<string, string>; expiresAt?: number } {
  const { dataset, interval, range, points, asOf, isCut = false } = series
  const due = toSeriesDueEnd(dataset, interval, now)
  const to = isCut && asOf !== null ? startAfter(asOf, interval) : range.to
  const missing = countMissing({ from: range.from, to }, interval, due, series)
  return { asOf, headers: toSeriesHeaders(interval, points, missing), ...toExpiry(range, due, now) }
}
