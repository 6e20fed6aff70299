import { z } from 'zod'
import { toSeriesDueEnd } from '../../shared/coverage/wanted.ts'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import { countBuckets, INTERVAL_SECONDS, type Interval, type TimeRange, toBucketStart } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { Problem } from '../problem/problem.ts'
import { toSeriesHeaders } from './series-headers.ts'

/** What a series covers: whole buckets that start in the range, which begins and ends on the grid. */
export interface SeriesRange extends TimeRange {
  /** Whether it reaches up to now, so that time adds buckets to it. */
  readonly open: boolean
}

/** @throws Problem `invalid_parameter` for a range that ends before it starts. */
export function checkRange({ start, end }: { start?: number | undefined; end?: number | undefined }): void {
  if (start === undefined || end === undefined || end >= start) return
  throw new Problem('invalid_parameter', 'end must not be before start.', { param: 'end' })
}

/** The first grid time at or after a moment. */
const nextStart = (ms: number, interval: Interval) =>
  toBucketStart(ms - 1, interval) + INTERVAL_SECONDS[interval] * 1000

/** The start of the bucket after the one that holds a moment. */
export const startAfter = (ms: number, interval: Interval) => nextStart(ms + 1, interval)

/**
 * The whole buckets whose starts lie in [start, end) (docs/contract.md, section 4). Without an end, or with one to come, the
 * last is the bucket under way.
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

/** The next moment at which a bucket of any interval begins: coarser grids are parts of the finest one. */
export function nextGridTime(now: number): number {
  return startAfter(now, '5m')
}

/** The points of a series answer; `early` are those in buckets that are not due. */
export interface PointCounts {
  readonly points: number
  readonly early: number
}

const rowCount = z.object({ rows: z.int() })

/**
 * How many rows a statement selects.
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

/** How many buckets of a range are due, which ends at `due`, and have no point. */
export const countMissing = (
  { from, to }: TimeRange,
  interval: Interval,
  due: number,
  { points, early }: PointCounts,
): number => Math.max(0, countBuckets(from, Math.min(to, due), interval) - (points - early))

/** When an answer over a range becomes another one by the clock alone: while its range is open or has buckets that are not due. */
export const toExpiry = ({ open, to }: SeriesRange, due: number, now: number): { readonly expiresAt?: number } =>
  open || to > due ? { expiresAt: nextGridTime(now) } : {}

/**
 * Age, expiry and headers of a series answer. Buckets are counted up to the end of the range, or up to the last point when
 * `limit` cut the answer there.
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
