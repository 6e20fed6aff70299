import { createBatcher } from '../../shared/batcher.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import { INTERVAL_SECONDS, INTERVALS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { readAnswer } from '../answers/rows.ts'
import { withSignal } from '../cache/single-flight.ts'
import type { PointsRange, StoredPoints } from '../route/stored-points.ts'
import { toChunkMs } from '../series/chunks.ts'
import { type ColumnTypes, readNative, type StoredRows, selectRange, selectToken } from './stored-rows.ts'

const STATEMENT = 'historic-financial'
/** Stored columns. Planning the expressions of the other columns takes ClickHouse longer than reading a day. */
const STORED = {
  price_code: 'Int64',
  circulating_supply: 'Nullable(Float64)',
  market_cap_code: 'Nullable(Int64)',
  volume_24h_code: 'Nullable(Int64)',
  total_supply: 'Nullable(Float64)',
}

/** The columns of the rows of one token. */
export const toColumnTypes = (interval: Interval): ColumnTypes => ({
  ...(interval === '5m' ? {} : { bucket_at: 'DateTime' }),
  observed_at: "DateTime64(3, 'UTC')",
  ...STORED,
})
/**
 * The planner used without the analyzer considers only the columns that a statement names. The analyzer resolves the
 * expressions of all columns, which takes a quarter of the time for one day.
 */
const SETTINGS = { max_threads: 1, enable_analyzer: 0 }

/** The table of an interval's points: the raw series for the finest interval, a part of the roll-ups for the others. */
export function toTier(interval: Interval): { table: string; time: string; isOfTier: string } {
  if (interval === '5m') return { table: 'token_prices', time: 'observed_at', isOfTier: 'true' }
  const isOfTier = `interval_seconds = ${INTERVAL_SECONDS[interval]}`
  return { table: 'token_price_rollups', time: 'bucket_at', isOfTier }
}

/**
 * SQL condition for the range in the parameters `token`, `from` and `to`; with several ranges each name ends with its
 * number.
 */
export const RANGE = (column: string, number: number | '' = '') => `token = {token${number}: UInt64}
  AND ${column} >= fromUnixTimestamp64Milli({from${number}: Int64}, 'UTC') AND ${column} < fromUnixTimestamp64Milli({to${number}: Int64}, 'UTC')`

/**
 * The stored rows of ranges, oldest first.
 * @throws DataError `storage`
 */
export async function readStoredRows(
  db: Database,
  interval: Interval,
  ranges: readonly PointsRange[],
): Promise<StoredRows[]> {
  const { table, time, isOfTier } = toTier(interval)
  const isInRanges = ranges.map((_, number) => `(${RANGE(time, number)})`).join(' OR ')
  const columns = { token: 'UInt64', ...toColumnTypes(interval) }
  const bytes = await readAnswer(db, {
    name: STATEMENT,
    sql: `SELECT ${Object.keys(columns).join(', ')} FROM ${table} FINAL WHERE ${isOfTier} AND (${isInRanges}) ORDER BY token, ${time}`,
    params: Object.assign({}, ...ranges.map(toParams)),
    format: 'Native',
    settings: SETTINGS,
  })
  try {
    const rows = readNative(bytes, columns)
    return ranges.map((range) => selectRange(selectToken(rows, range.token), range))
  } catch (error) {
    throw new DataError('storage', `ClickHouse, ${STATEMENT}: an answer of an unexpected shape: ${toReason(error)}`)
  }
}

const toParams = ({ token, from, to }: PointsRange, number: number) => ({
  [`token${number}`]: token,
  [`from${number}`]: from,
  [`to${number}`]: to,
})

/** Maximum number of chunks of an answer that is written in this process: they take milliseconds of the only thread. */
export const SHORT_CHUNKS = 8
/** Maximum number of chunks per statement. */
const STATEMENT_CHUNKS = 28

const countChunks = ({ from, to }: TimeRange, interval: Interval) => (to - from) / toChunkMs(interval)

/** Whether the points of a range are written in this process, from stored rows. */
export const isShort = (range: TimeRange, interval: Interval): boolean => countChunks(range, interval) <= SHORT_CHUNKS

/** One concurrent statement per this number of concurrent answers; further reads are batched. */
const ANSWERS_PER_STATEMENT = 4

/**
 * Batches reads of short ranges into one statement while others are running. On a cluster each range is read alone: one
 * token needs one shard, and its answer does not depend on another shard's availability.
 */
export function createStoredPoints(db: Database, maxAnswers: number): StoredPoints {
  const createRead = (interval: Interval): StoredPoints[Interval] => {
    const read = (ranges: readonly PointsRange[], signal: AbortSignal) =>
      readStoredRows(withSignal(db, signal), interval, ranges)
    const gather = createBatcher({
      read,
      concurrency: Math.max(2, Math.floor(maxAnswers / ANSWERS_PER_STATEMENT)),
      most: STATEMENT_CHUNKS,
      weigh: (range: PointsRange) => Math.max(1, countChunks(range, interval)),
    })
    const isAlone = (range: PointsRange) =>
      db.cluster !== undefined || countChunks(range, interval) > STATEMENT_CHUNKS / 2
    return (range, abandoned) =>
      inTime(abandoned, db.answerTimeoutMs, (signal) =>
        isAlone(range) ? read([range], signal).then(([rows]) => rows as StoredRows) : gather(range, signal),
      )
  }
  return Object.fromEntries(INTERVALS.map((interval) => [interval, createRead(interval)])) as StoredPoints
}

/**
 * Reads within the time limit of an answer, including the wait for a statement.
 * @throws DataError `storage`
 */
async function inTime<T>(
  abandoned: AbortSignal,
  timeoutMs: number,
  read: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = AbortSignal.timeout(timeoutMs)
  try {
    return await read(AbortSignal.any([abandoned, late]))
  } catch (error) {
    if (error !== late.reason) throw error
    throw new DataError('storage', `ClickHouse: no answer within ${timeoutMs / 1000} s`, { cause: error })
  }
}
