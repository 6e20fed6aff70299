import { z } from 'zod'
import { DAY_MS, type Interval } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { SeriesRange } from './series.ts'
import { type SeriesSource, toBucketSql, toPointsSql } from './series-source.ts'

/** How many points each interval has of a range. */
async function countPoints(
  db: Database,
  source: SeriesSource,
  toRange: (interval: Interval) => SeriesRange,
  intervals: readonly Interval[],
): Promise<readonly (readonly [Interval, number])[]> {
  const [finest] = intervals as [Interval]
  const { from, to } = toRange(finest)
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
 * The coarsest interval that gives at least so many points of a range, or the finest where none does (docs/contract.md, section 8).
 * @throws DataError `storage`
 */
export async function chooseInterval(
  db: Database,
  source: SeriesSource,
  toRange: (interval: Interval) => SeriesRange,
  points: number,
): Promise<Interval> {
  const { intervals, hasOwnPoints = false } = source
  const alike = hasOwnPoints ? intervals.map((interval) => [interval]) : [intervals]
  const counts = (await Promise.all(alike.map((some) => countPoints(db, source, toRange, some)))).flat()
  const enough = counts.filter(([, count]) => count >= points)
  return enough.at(-1)?.[0] ?? intervals[0]
}

/** Up to when a series was read, or the newest time of an open range's last two weeks, in Unix milliseconds; null where there is none. */
export async function findNewestOf(db: Database, source: SeriesSource, { to }: SeriesRange): Promise<number | null> {
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

/** The time of the first point of a series up to now, in Unix milliseconds; undefined where it has none. */
export async function findOldest(db: Database, source: SeriesSource, now: number): Promise<number | undefined> {
  const [row] = await db.rows({
    name: `${source.name}-oldest`,
    sql: `SELECT toUnixTimestamp64Milli(min(row_at)) AS oldest, count() AS points FROM (${source.sql(source.intervals[0])})`,
    params: { ...source.params, from: 0, to: now },
    settings: { max_threads: 1 },
    schema: z.object({ oldest: z.int(), points: z.int() }),
  })
  return row === undefined || row.points === 0 ? undefined : row.oldest
}
