import { z } from 'zod'
import { createBatcher } from '../../shared/batcher.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import { INTERVAL_SECONDS, INTERVALS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import { withSignal } from '../cache/single-flight.ts'
import { idValue, inTime, numberOrNull, type Rows, readAnswer, timeValue, toObject } from '../formats/formats.ts'
import type { PointsRange, StoredPoints, StoredRows } from '../route/stored-points.ts'
import { toChunkMs, writeRows } from '../series/chunks.ts'
import { type ColumnTypes, readNative, selectRange, selectToken } from './stored-rows.ts'

/** The values of a point. */
const quote = z
  .strictObject({
    USD: z
      .strictObject({
        price: z.number().describe('Price of one token.'),
        volume_24h: numberOrNull.describe('Trading volume of the previous 24 hours on all markets; null if unknown.'),
        market_cap: numberOrNull.describe('Price times circulating supply; null if unknown.'),
        total_supply: numberOrNull.describe('Total supply in tokens; null if unknown.'),
        circulating_supply: numberOrNull.describe('Circulating supply in tokens; null if unknown.'),
        timestamp: timeValue.describe('Time of the observation itself.'),
      })
      .describe('In US dollars.'),
  })
  .meta({ id: 'PriceQuote', description: 'Observed values by currency.' })

/** A point of a series; a table row has the same members after those of its token. */
export const pricePoint = z
  .strictObject({
    timestamp: timeValue.describe('Start of the bucket.'),
    quote: quote.describe('The first observation of the bucket.'),
  })
  .meta({ id: 'PricePoint', description: 'One bucket of a series of prices.' })
export const priceRow = z.strictObject({
  id: idValue.describe('Id of the token.'),
  name: z.string().describe('Name of the token.'),
  symbol: z.string().describe('Symbol of the token.'),
  ...pricePoint.shape,
})

export const VALUES = 'price, volume_24h, market_cap, total_supply, circulating_supply'

/** SQL for the members of a point, from a row with `bucket`, `as_of` and `VALUES`. */
export const POINT = `bucket, tuple(tuple(${VALUES}, as_of))`

const AS_POINT = toObject(pricePoint, POINT)
const AS_QUOTE = toObject(quote, `tuple(${VALUES}, as_of)`)

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
const RANGE = (column: string, number: number | '' = '') => `token = {token${number}: UInt64}
  AND ${column} >= fromUnixTimestamp64Milli({from${number}: Int64}, 'UTC') AND ${column} < fromUnixTimestamp64Milli({to${number}: Int64}, 'UTC')`

// `from` and `to` lie on the grid of the interval, so that a range of observations is a range of complete buckets.
const FINE = `
SELECT toDateTime64(toStartOfInterval(observed_at, INTERVAL 5 MINUTE, 'UTC'), 3, 'UTC') AS bucket, observed_at AS as_of, ${VALUES}, _part
FROM token_prices FINAL
WHERE ${RANGE('observed_at')}
ORDER BY token, observed_at
LIMIT 1 BY bucket`

const coarse = ({ table, isOfTier }: ReturnType<typeof toTier>) => `
SELECT toDateTime64(bucket_at, 3, 'UTC') AS bucket, observed_at AS as_of, ${VALUES}, _part
FROM ${table} FINAL
WHERE ${isOfTier} AND ${RANGE('bucket_at')}
ORDER BY token, interval_seconds, bucket_at`

/**
 * SQL for the points of a token (parameters `token`, `from` and `to` in Unix milliseconds on the grid, `limit`), oldest
 * first: `all` selects all of them. With `limit`: `columns` adds the table part of each, `rows` has the API's shape,
 * and `records` has that shape with the time.
 */
export function pointsSql(interval: Interval): { all: string; columns: string; rows: string; records: string } {
  const all = interval === '5m' ? FINE : coarse(toTier(interval))
  const columns = `${all}\nLIMIT {limit: UInt32}`
  return {
    all,
    columns,
    rows: `SELECT bucket AS timestamp, ${AS_QUOTE} AS quote FROM (${columns})`,
    records: `SELECT bucket AS row_at, as_of, ${AS_POINT} AS record FROM (${columns})`,
  }
}

/**
 * SQL for the observations of a token's points (parameters `token`, `from` and `to` as above), unordered, each with its
 * table part. Contains all observations of a bucket, while `pointsSql` selects the first.
 */
export function observationsSql(interval: Interval): string {
  const { table, time, isOfTier } = toTier(interval)
  const bucket = interval === '5m' ? "toStartOfInterval(observed_at, INTERVAL 5 MINUTE, 'UTC')" : time
  return `SELECT ${bucket} AS bucket, observed_at AS as_of, ${VALUES}, _part FROM ${table} FINAL WHERE ${isOfTier} AND ${RANGE(time)}`
}

/** The points as ClickHouse writes them, byte for byte the same as `writeJson` writes them from stored rows. */
export const writePoints = (
  db: Database,
  { token, interval, ...range }: TimeRange & { readonly token: number; readonly interval: Interval },
): Promise<Rows> =>
  writeRows(db, {
    name: 'historic-financial',
    sql: pointsSql(interval).records,
    params: { token, ...range, limit: ALL },
  })

/** More points than any range may have. */
const ALL = 4_294_967_295

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
      inTime(
        db.answerTimeoutMs,
        (signal) =>
          isAlone(range) ? read([range], signal).then(([rows]) => rows as StoredRows) : gather(range, signal),
        abandoned,
      )
  }
  return Object.fromEntries(INTERVALS.map((interval) => [interval, createRead(interval)])) as StoredPoints
}
