import { z } from 'zod'
import type { DayMembers } from '../../shared/datasets/day-members.ts'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { DAY_MS, INTERVAL_SECONDS, type Interval, MONDAY_SHIFT_MS, type TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import { type Rows, toObject } from '../formats/formats.ts'
import { type Reader, type Series, type StoredSource, toChunkBuckets, writeRows } from './chunks.ts'
import { type Constants, toFilledSchema, toFilledValues } from './filled.ts'
import type { PointsForm } from './points.ts'
import type { SeriesRange } from './series.ts'

/** A series as SQL statements, for answers of any order, interval and number of points. */
export interface SeriesSource {
  /** Name of the statements in logs and traces. */
  readonly name: string
  /** The dataset; its cadence decides when the series is stale. */
  readonly dataset: DatasetFacts
  readonly record: z.ZodObject
  /** The member with the time, which filled rows also have. */
  readonly time: string
  /** Members that are the same in every row, as SQL. */
  readonly constants?: Constants
  readonly intervals: readonly [Interval, ...Interval[]]
  /**
   * SQL for the points of buckets that start in a range (parameters `from` and `to`, Unix milliseconds), unordered:
   * `row_at`, `as_of` (both DateTime64(3)) and `record`. If the series has no separate points per interval, selects
   * those of the finest one; the first of a coarser bucket represents it.
   */
  sql(interval: Interval): string
  readonly params: Readonly<Record<string, unknown>>
  /**
   * SQL that selects `newest`, the time up to which the rows were read (Unix milliseconds), for rows that are read on
   * time but rarely change. If absent, the series is as old as its newest row.
   */
  readonly readUpTo?: string
  /** Set if an interval can have points in buckets where the finest interval has none. */
  readonly hasOwnPoints?: boolean
  /** Set if answers in text formats are made from cached chunks: if its rows alone decide its points. */
  readonly cached?: CachedSource
}

/** How the points of a source are cached. */
interface CachedSource extends Pick<PointsForm, 'readAsOf'> {
  /** Distinguishes the series from all others. */
  readonly key: string
  /** Set if records have members that cached points do not have, before the others: the same in all records. */
  readonly before?: Readonly<Record<string, string>>
  /** Set for a short series, such as a daily one: one chunk has all its points. */
  readonly isShort?: boolean
  /** Reads the points of an interval faster than by `sql`. */
  readonly fast?: {
    read(db: Database, interval: Interval, range: TimeRange, abandoned: AbortSignal): Promise<Rows>
    count(db: Database, interval: Interval, range: TimeRange, toChunkSql: ToChunkSql): Promise<ChunkCounts>
    toStored(interval: Interval): StoredSource
  }
}

export type WithCache = SeriesSource & { readonly cached: CachedSource }

type ToChunkSql = (at: string) => string
type ChunkCounts = ReadonlyMap<number, number>

const chunkCount = z.object({ chunk: z.int(), points: z.int() })

/** Counts points by chunk; `sql` selects them with their `bucket`. */
export async function countByChunk(
  db: Database,
  { name, sql, params }: { name: string; sql: string; params: Readonly<Record<string, unknown>> },
  toChunkSql: ToChunkSql,
): Promise<ChunkCounts> {
  const rows = await db.rows({
    name: `${name}-chunk-counts`,
    sql: `SELECT ${toChunkSql('bucket')} AS chunk, uniqExact(bucket) AS points FROM (${sql}) GROUP BY chunk`,
    params,
    settings: { max_threads: 1 },
    schema: chunkCount,
  })
  return new Map(rows.map(({ chunk, points }) => [chunk, points]))
}

/** The series of a source with cached chunks, in a form of its text. */
export function toSeries(source: WithCache, form: Pick<PointsForm, 'interval' | 'order' | 'hasLines'>): Series {
  const { name, dataset, record, params } = source
  const { key, isShort = false, readAsOf, before = {}, fast } = source.cached
  const { interval } = form
  const firstMember = Object.keys(record.shape)[Object.keys(before).length] ?? ''
  const toStatement = ({ from, to }: TimeRange) => ({
    name,
    sql: `SELECT bucket AS row_at, as_of, record, bucket FROM (${toPointsSql(source, interval)})`,
    params: { ...params, from, to },
  })
  return {
    key,
    dataset: dataset.name,
    form: { ...form, firstMember, ...(readAsOf && { readAsOf }) },
    chunkBuckets: isShort ? null : toChunkBuckets(interval, fast === undefined),
    ...(fast && { stored: fast.toStored(interval) }),
    read: (db, range, abandoned) => fast?.read(db, interval, range, abandoned) ?? writeRows(db, toStatement(range)),
    count: (db, range, toChunkSql) =>
      fast?.count(db, interval, range, toChunkSql) ?? countByChunk(db, toStatement(range), toChunkSql),
  }
}

export const isCachedSource = (source: SeriesSource): source is WithCache => source.cached !== undefined

/** All grids begin on the first Monday (docs/contract.md, section 4). */
export const toBucketSql = (at: string, interval: Interval) => {
  const ms = `toUnixTimestamp64Milli(${at})`
  return `fromUnixTimestamp64Milli(${ms} - (${ms} - ${MONDAY_SHIFT_MS}) % ${INTERVAL_SECONDS[interval] * 1000}, 'UTC')`
}

/** The record of a row `p` with the bucket's start as its time (docs/contract.md, section 4). */
function toBucketRecord({ record, time, intervals: [finest] }: SeriesSource, interval: Interval): string {
  if (interval === finest) return 'p.record'
  const values = Object.keys(record.shape).map((name) =>
    name === time ? 'bucket' : `tupleElement(p.record, '${name}')`,
  )
  return toObject(record, values.join(', '))
}

/** One point per bucket: `bucket`, `as_of`, `record`. */
export const toPointsSql = (source: SeriesSource, interval: Interval) => `
SELECT ${toBucketSql('p.row_at', interval)} AS bucket, p.as_of AS as_of, ${toBucketRecord(source, interval)} AS record
FROM (${source.sql(interval)}) AS p
ORDER BY p.row_at
LIMIT 1 BY bucket`

/**
 * Every bucket of the range that is due (before the parameter `due`) or has a point: `bucket`, `as_of` and `record`
 * like a point, and `is_there`.
 */
export const toFilledSql = (source: SeriesSource, interval: Interval) => `
SELECT grid.bucket AS bucket, if(p.is_there, p.as_of, toDateTime64(0, 3, 'UTC')) AS as_of, p.is_there AS is_there,
  ${toObject(toFilledSchema(source), toFilledValues(source, 'p.record', 'p.is_there', 'grid.bucket'))} AS record
FROM
(
  SELECT fromUnixTimestamp64Milli({from: Int64} + number * {step: Int64}, 'UTC') AS bucket FROM numbers({buckets: UInt64})
) AS grid
LEFT JOIN (SELECT *, true AS is_there FROM (${toPointsSql(source, interval)})) AS p ON p.bucket = grid.bucket
WHERE p.is_there OR toUnixTimestamp64Milli(grid.bucket) < {due: Int64}`

/** Number of points of a range per interval. */
async function countPoints(
  db: Database,
  source: SeriesSource,
  toRange: (interval: Interval) => SeriesRange,
  intervals: readonly Interval[],
): Promise<readonly (readonly [Interval, number])[]> {
  const [finest] = intervals as [Interval]
  const from = toRange(finest).from
  // The first observation of the last coarse bucket may lie after the end of the finest points.
  const to = Math.max(...intervals.map((interval) => toRange(interval).to))
  const schema = z.object(Object.fromEntries(intervals.map((interval) => [`of_${interval}`, z.int()])))
  const ranges = intervals.map((interval) => {
    const range = toRange(interval)
    return { [`from_${interval}`]: range.from, [`to_${interval}`]: range.to }
  })
  const counts = intervals.map((interval) => {
    const bucket = toBucketSql('bucket', interval)
    const at = `toUnixTimestamp64Milli(${bucket})`
    return `uniqExactIf(${bucket}, ${at} >= {from_${interval}: Int64} AND ${at} < {to_${interval}: Int64}) AS of_${interval}`
  })
  const [row] = await db.rows({
    name: `${source.name}-intervals`,
    sql: `SELECT ${counts.join(', ')} FROM (${toPointsSql(source, finest)})`,
    params: { ...source.params, from, to, ...Object.assign({}, ...ranges) },
    settings: { max_threads: 2 },
    schema,
  })
  return intervals.map((interval) => [interval, Number(row?.[`of_${interval}`] ?? 0)])
}

/**
 * The coarsest interval with at least `points` points in a range; if there is none, the one with the most points, of
 * equal ones the finest (docs/contract.md, section 8).
 * @throws DataError `storage`
 */
export async function chooseInterval(
  db: Database,
  source: SeriesSource,
  toRange: (interval: Interval) => SeriesRange,
  points: number,
): Promise<Interval> {
  const { intervals, hasOwnPoints = false } = source
  const groups = hasOwnPoints ? intervals.map((interval) => [interval]) : [intervals]
  const counts = (await Promise.all(groups.map((group) => countPoints(db, source, toRange, group)))).flat()
  const enough = counts.findLast(([, count]) => count >= points)
  if (enough !== undefined) return enough[0]
  // Old ranges may have coarse points only.
  const most = Math.max(0, ...counts.map(([, count]) => count))
  return counts.find(([, count]) => count === most)?.[0] ?? intervals[0]
}

/**
 * Time up to which a series was read, or the newest time in an open range's last two weeks, in Unix milliseconds; null
 * if there is none.
 */
export async function findNewestOf(call: Reader, source: SeriesSource, { to }: SeriesRange): Promise<number | null> {
  const read = async (db: Database) => {
    const [row] = await db.rows({
      name: `${source.name}-newest`,
      sql:
        source.readUpTo ??
        `SELECT toUnixTimestamp64Milli(max(as_of)) AS newest FROM (${source.sql(source.intervals[0])})`,
      params: { ...source.params, from: to - 14 * DAY_MS, to },
      settings: { max_threads: 1 },
      schema: z.object({ newest: z.int() }),
    })
    return row === undefined || row.newest === 0 ? null : row.newest
  }
  if (!isCachedSource(source)) return read(call.db)
  const key = `newest ${source.cached.key} ${to}`
  const load = async (db: Database) => ({ at: await read(db), size: 8 })
  return (await call.cache.get(key, { datasets: [source.dataset.name] }, load, call)).at
}

/**
 * SQL for the points of a series source that compare each day with the day one interval before: the sums on both days
 * over the members with a value on both, and their number. A day without common members has no point. Values are added
 * as decimals, like the stored sums: floating-point sums depend on the order in which rows are read.
 */
export function toLikeForLikeSql(record: z.ZodObject, members: DayMembers, interval: Interval): string {
  const seconds = INTERVAL_SECONDS[interval]
  const sum = (column: string) => `toFloat64(sum(toDecimal256(${column}, 12)))`
  return `SELECT toDateTime64(day, 3, 'UTC') AS row_at, row_at AS as_of,
  ${toObject(record, 'row_at, tuple(value, before, 100 * (value / before - 1), tuple(members))')} AS record
FROM
(
  SELECT day, ${sum('usd_now')} AS value, ${sum('usd_before')} AS before, count() AS members
  FROM
  (
    SELECT place.1 AS day, member, anyIf(usd, NOT place.2) AS usd_now, anyIf(usd, place.2) AS usd_before
    FROM
    (
      SELECT member, usd, arrayJoin([(toDateTime(day, 'UTC'), false), (toDateTime(day, 'UTC') + INTERVAL ${seconds} SECOND, true)]) AS place
      FROM (${members(seconds * 1000)})
    )
    GROUP BY day, member
    HAVING countIf(place.2) > 0 AND countIf(NOT place.2) > 0
  )
  GROUP BY day
)
WHERE row_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') AND row_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC')`
}
