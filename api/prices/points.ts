import { z } from 'zod'
import type { Interval, TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Rows } from '../answers/rows.ts'
import { toObject } from '../records/answer.ts'
import { idValue, numberOrNull, timeValue } from '../records/table.ts'
import { writeRows } from '../series/chunks.ts'
import { RANGE, toTier } from './stored-points.ts'

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

/** The points as ClickHouse writes them, byte for byte the same as `readStoredPoints` for one range. */
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
