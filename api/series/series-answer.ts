import { z } from 'zod'
import { toSeriesDueEnd } from '../../shared/buckets.ts'
import { countBuckets, HISTORY_START, INTERVAL_SECONDS, type Interval, toBucketStart } from '../../shared/intervals.ts'
import { toJson } from '../../shared/json.ts'
import { toStaleAt } from '../../shared/store/store.ts'
import { doIfCached } from '../cache/chunks.ts'
import {
  type Answer,
  answerRecords,
  type BytesAnswer,
  FORMATS,
  MOST_CACHED,
  type Representation,
  refuseCursor,
  toDisposition,
  writeRecords,
} from '../formats/formats.ts'
import type { AppContext } from '../route/define-route.ts'
import { selectPoints } from './chunks.ts'
import { toFilledSchema } from './filled.ts'
import type { Points } from './points.ts'
import {
  checkFill,
  checkInterval,
  countMissing,
  type Frame,
  inFrame,
  NO_FRAME,
  type PointCounts,
  type SeriesQuestion,
  type SeriesRange,
  toExpiry,
  toSeriesHeaders,
  toSeriesRange,
} from './series.ts'
import {
  chooseInterval,
  findNewestOf,
  isCachedSource,
  type SeriesSource,
  toFilledSql,
  toPointsSql,
  toSeries,
  type WithCache,
} from './series-source.ts'

/** The parsed parameters of an answer. */
interface SeriesQuery extends Pick<SeriesQuestion, 'fill'> {
  readonly order: 'asc' | 'desc'
  readonly range: SeriesRange
  readonly interval: Interval
  /** The end of the due buckets, in Unix milliseconds. */
  readonly due: number
  /** Maximum rows. Default: all rows of the range. */
  readonly limit: number | undefined
}

/** Number of points in an answer, and the starts of its earliest and latest bucket in Unix milliseconds. */
interface Described extends PointCounts {
  readonly first: number
  readonly last: number
}

export type SeriesCall = Pick<AppContext, 'now' | 'db' | 'chunks'> & {
  readonly representation: Representation
  readonly signal: AbortSignal
}

/** Whether the form of an answer is that of the cached points. */
const hasFormOfPoints = ({ format, hasAllFields }: Representation): boolean => format === 'json' && hasAllFields

/** Whether ClickHouse writes an answer of this many points, instead of this process from cached points. */
export const isWritten = (representation: Representation, points: number): boolean =>
  !hasFormOfPoints(representation) && (FORMATS[representation.format].isBinary || points > MOST_CACHED.pricePoints)

/**
 * The `peek` of a series: its answer from cached chunks alone, undefined if a value must be read.
 */
export const fromCache =
  <C extends Omit<SeriesCall, 'signal'>>(handle: (call: C & { readonly signal: AbortSignal }) => Promise<Answer>) =>
  (call: C): Promise<Answer | undefined> | undefined =>
    !isWritten(call.representation, 0) ? doIfCached(call, (cached) => handle({ ...call, ...cached })) : undefined

/** Points in another form than that of the cached points. */
export function toAnswer(
  points: Points,
  { record, cached: { before = {} } }: WithCache,
  representation: Representation,
): BytesAnswer {
  const start = `${JSON.stringify(before).slice(0, -1)},`
  const records = points.toRecords()
  const rows = start === '{,' ? records : records.map((json) => Buffer.concat([Buffer.from(start), json.subarray(1)]))
  const fields = representation.hasAllFields ? Object.keys(record.shape) : representation.fields
  return {
    body: writeRecords(rows, { ...representation, record, fields }),
    asOf: points.asOf,
    format: representation.format,
    headers: toDisposition(representation),
    isQuick: true,
  }
}

/**
 * The first `limit` points of a range from cached chunks; undefined if ClickHouse writes the answer.
 */
export async function answerPoints(
  call: SeriesCall,
  source: SeriesSource,
  query: Omit<SeriesQuery, 'fill' | 'due'> & { readonly mostCached?: number },
  frame: Frame,
): Promise<{ readonly answer: Answer; readonly points: Points; readonly isCut: boolean } | undefined> {
  const { range, interval, order, limit, mostCached = MOST_CACHED.pricePoints } = query
  const { representation } = call
  if (!isCachedSource(source)) return undefined
  const most = Math.min(limit ?? Number.POSITIVE_INFINITY, countBuckets(range.from, range.to, interval))
  const isOneChunk = source.cached.isShort === true
  if (isWritten(representation, isOneChunk ? 0 : most)) return undefined
  const isInForm = hasFormOfPoints(representation)
  const series = toSeries(source, { interval, order, hasLines: isInForm && most > mostCached })
  const { points, isCut } = await selectPoints(series, call, range, limit)
  if (isInForm) return { answer: { assembled: points.toBody(frame), asOf: points.asOf }, points, isCut }
  if (isWritten(representation, points.count)) return undefined
  const answer = toAnswer(points, source, representation)
  return { answer: representation.format === 'json' ? inFrame(answer, frame) : answer, points, isCut }
}

const AT = 'toUnixTimestamp64Milli(bucket)'
const ORDERS = { asc: AT, desc: `${AT} DESC` } as const

/** The position of a page's end: start of its last bucket and bucket length, both in milliseconds. */
const PLACE = `tuple(${AT}, {step: Int64})`
const placeValues = z.tuple([z.int(), z.int()])

const counted = z.object({ points: z.int(), early: z.int(), first: z.int(), last: z.int() })

/** An answer with the position of its end, an empty text if no points follow; and its points, if they are cached. */
type Page = Answer &
  Described & { readonly next: string; readonly headers: Record<string, string>; readonly selected?: Points }

/** A series in the requested order, from cached chunks; undefined if ClickHouse writes the answer. */
async function answerCached(
  call: SeriesCall,
  source: SeriesSource,
  query: SeriesQuery,
  frame: Frame,
): Promise<Page | undefined> {
  const found = query.fill === undefined ? await answerPoints(call, source, query, frame) : undefined
  if (found === undefined) return undefined
  const { answer, points, isCut } = found
  const { earliest: first, latest: last } = points
  const end = query.order === 'asc' ? last : first
  const next = isCut ? JSON.stringify([end, INTERVAL_SECONDS[query.interval] * 1000]) : ''
  const link = isCut ? { Link: call.representation.nextLink(next) } : {}
  const headers: Record<string, string> = { ...answer.headers, ...link }
  const counts = { points: points.count, early: points.countSince(query.due) }
  return { ...answer, ...counts, first, last, next, headers, selected: points }
}

/**
 * A series in the requested order as ClickHouse writes it; with `fill` a row for every bucket.
 * @throws DataError `storage`, Problem `invalid_parameter` for an invalid cursor.
 */
async function answerWritten(
  { db, representation }: SeriesCall,
  source: SeriesSource,
  query: SeriesQuery,
  frame: Frame,
): Promise<Page> {
  const { range, interval, due, limit, order, fill } = query
  const isFilled = fill === 'null'
  const buckets = countBuckets(range.from, range.to, interval)
  const isThere = isFilled ? 'is_there' : 'true'
  const rows = isFilled ? toFilledSql(source, interval) : toPointsSql(source, interval)
  const page = `(${rows}) ORDER BY ${ORDERS[order]} LIMIT {limit: UInt32}`
  const params = {
    ...source.params,
    ...{ from: range.from, to: range.to, step: INTERVAL_SECONDS[interval] * 1000, due, buckets },
  }
  const record = isFilled ? toFilledSchema(source) : source.record
  const fields = representation.hasAllFields ? Object.keys(record.shape) : representation.fields
  const [answer, [found]] = await Promise.all([
    answerRecords(
      { db, representation: { ...representation, record, fields } },
      {
        name: source.name,
        sql: `SELECT as_of, ${PLACE} AS page_key, record FROM ${page}`,
        params: { ...params, limit: buckets },
        ...(limit === undefined ? {} : { page: limit }),
      },
      { isLong: Math.min(buckets, limit ?? buckets) > MOST_CACHED.pricePoints },
    ),
    db.rows({
      name: `${source.name}-summary`,
      sql: `SELECT countIf(${isThere}) AS points, countIf(${isThere} AND ${AT} >= {due: Int64}) AS early,
  toUnixTimestamp64Milli(min(bucket)) AS first, toUnixTimestamp64Milli(max(bucket)) AS last FROM (SELECT bucket${isFilled ? ', is_there' : ''} FROM ${page})`,
      params: { ...params, limit: Math.min(buckets, limit ?? buckets) },
      settings: { max_threads: 1 },
      schema: counted,
    }),
  ])
  const described = found ?? { points: 0, early: 0, first: 0, last: 0 }
  // Filled rows contain no data, so they do not count for the time of the data.
  const facts = { asOf: described.points === 0 ? null : answer.asOf, ...described }
  return { ...(representation.format === 'json' ? inFrame(answer, frame) : answer), ...facts }
}

/** The headers of a series answer. Missing buckets are counted over the range, or over the part that `limit` selected. */
function toHeaders(
  { range, interval, due, order }: Pick<SeriesQuery, 'range' | 'interval' | 'due' | 'order'>,
  { first, last, next, ...counts }: Described & { readonly next: string },
): Record<string, string> {
  const step = INTERVAL_SECONDS[interval] * 1000
  const covered =
    next === '' ? range : order === 'desc' ? { from: first, to: range.to } : { from: range.from, to: last + step }
  return toSeriesHeaders(interval, counts.points, countMissing(covered, interval, due, counts))
}

/**
 * Parses the end position of the previous page. The next page uses the interval in it: after a change event `points`
 * may select another one, and pages with two intervals would not fit together.
 * @throws Problem `invalid_parameter` for a position that no answer contained.
 */
function readPlace(after: string, { intervals }: SeriesSource): { at: number; interval: Interval } | undefined {
  if (after === '') return undefined
  const { data: [at, step] = [] } = placeValues.safeParse(toJson(after))
  const interval = intervals.find((one) => INTERVAL_SECONDS[one] * 1000 === step)
  if (at === undefined || interval === undefined) throw refuseCursor()
  return { at, interval }
}

/**
 * The range of a page that continues after a position. A range relative to now has moved since the previous page, so
 * the position may lie before its start. With oldest first the page continues from the position; with newest first it
 * is empty.
 * @throws Problem `invalid_parameter` for a position that no answer contained.
 */
function toRest(range: SeriesRange, interval: Interval, order: 'asc' | 'desc', at: number): SeriesRange {
  const earliest = Math.min(range.from, Date.parse(HISTORY_START))
  if (at < earliest || at >= range.to || toBucketStart(at, interval) !== at) throw refuseCursor()
  return order === 'asc'
    ? { ...range, from: at + INTERVAL_SECONDS[interval] * 1000 }
    : { ...range, to: Math.max(at, range.from), open: false }
}

/** The answer to a series request, and its counts. */
export interface SeriesAnswer extends Described {
  readonly answer: Answer
  /** The points, if they are cached. */
  readonly selected: Points | undefined
  readonly interval: Interval
  /** Upper bound for the times of rows: the counts of the answer refer to this range. */
  readonly covered: SeriesRange
}

/**
 * The points of a series from `start` on, in the requested form; `usual` is the default order (docs/contract.md,
 * section 8). JSON has the frame.
 * @throws DataError `storage`, Problem `invalid_parameter`.
 */
export async function answerQuestion(
  call: SeriesCall,
  source: SeriesSource,
  question: SeriesQuestion & {
    readonly start: number
    /**
     * Set if `start` is the first point of all: its bucket is then the first one, even if the bucket begins earlier.
     */
    readonly isFirstPoint?: boolean
    readonly end?: number | undefined
    readonly limit?: number | undefined
  },
  { usual = 'asc', frame = NO_FRAME }: { readonly usual?: 'asc' | 'desc'; readonly frame?: Frame } = {},
): Promise<SeriesAnswer> {
  const { start, isFirstPoint = false, end, limit, fill, points, order = usual } = question
  checkInterval(question)
  checkFill(question)
  const now = call.now()
  const toStart = (interval: Interval) => (isFirstPoint ? toBucketStart(start, interval) : start)
  const toRange = (interval: Interval) => toSeriesRange({ start: toStart(interval), end, interval }, now)
  const [finest] = source.intervals
  const place = readPlace(call.representation.after, source)
  const interval =
    place?.interval ??
    question.interval ??
    (points === undefined ? finest : await chooseInterval(call.db, source, toRange, points))
  const full = toRange(interval)
  const range = place === undefined ? full : toRest(full, interval, order, place.at)
  const due = toSeriesDueEnd(source.dataset, interval, now)
  const seriesQuery = { range, interval, due, limit, order, fill }
  const { next, ...found } =
    (await answerCached(call, source, seriesQuery, frame)) ?? (await answerWritten(call, source, seriesQuery, frame))
  // An answer that was cut at its newer end does not become stale.
  const endsNow = range.open && (next === '' || order === 'desc')
  // A point of a coarse bucket may be days old while the finest interval has newer points.
  const isOlder = interval !== finest || source.readUpTo !== undefined
  const newest = endsNow && isOlder ? await findNewestOf(call, source, range) : null
  const answer = {
    ...found,
    headers: { ...found.headers, ...toHeaders(seriesQuery, { ...found, next }) },
    ...(endsNow ? {} : { staleAt: null }),
    ...(newest === null ? {} : { staleAt: toStaleAt(newest, source.dataset) }),
    ...toExpiry(range, due, now),
  }
  const covered = { from: found.first, to: found.last + INTERVAL_SECONDS[interval] * 1000, open: range.open }
  const { points: count, early, first, last } = found
  return { answer, selected: found.selected, interval, covered, points: count, early, first, last }
}
