import { z } from 'zod'
import { INTERVAL_SECONDS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { toObject } from '../records/columns.ts'
import { idValue, numberOrNull, timeValue } from '../records/values.ts'
import { countRows } from '../series/series.ts'

/** What a point says. */
const quote = z
  .strictObject({
    USD: z
      .strictObject({
        price: z.number().describe('Price of one token.'),
        volume_24h: numberOrNull.describe(
          'What was traded in the 24 hours before, on all markets; null where no source tells it.',
        ),
        market_cap: numberOrNull.describe('Price times circulating supply; null where no source tells it.'),
        total_supply: numberOrNull.describe('Tokens that existed; null where no source tells it.'),
        circulating_supply: numberOrNull.describe('Tokens that were in circulation; null where no source tells it.'),
        timestamp: timeValue.describe('Time of the observation itself.'),
      })
      .describe('In US dollars.'),
  })
  .meta({ id: 'PriceQuote', description: 'What was observed, by currency.' })

/** A point of a series, and as a row of a table: whose it is, then the same. */
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

/** Where the points of an interval are read: the finest ones are the raw series itself, the others a part of the roll-ups. */
export function toTier(interval: Interval): { table: string; time: string; isOfTier: string } {
  if (interval === '5m') return { table: 'token_prices', time: 'observed_at', isOfTier: 'true' }
  const isOfTier = `interval_seconds = ${INTERVAL_SECONDS[interval]}`
  return { table: 'token_price_rollups', time: 'bucket_at', isOfTier }
}

/** The range of the parameters `token`, `from` and `to`, of one of several with its number after each. */
export const RANGE = (column: string, number: number | '' = '') => `token = {token${number}: UInt64}
  AND ${column} >= fromUnixTimestamp64Milli({from${number}: Int64}, 'UTC') AND ${column} < fromUnixTimestamp64Milli({to${number}: Int64}, 'UTC')`

export const VALUES = 'price, volume_24h, market_cap, total_supply, circulating_supply'

/** The members of a point, from a row that has `bucket`, `as_of` and `VALUES`. */
export const POINT = `bucket, tuple(tuple(${VALUES}, as_of))`

const AS_POINT = toObject(pricePoint, POINT)
const AS_QUOTE = toObject(quote, `tuple(${VALUES}, as_of)`)

// `from` and `to` lie on the grid of the interval, so that a range of observations is a range of whole buckets.
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
 * The points of a token (parameters `token`, `from` and `to` in Unix milliseconds on the grid, `limit`), oldest first:
 * `all` of them and, `limit` of them, as `columns` with the table's part that holds each, as `rows` of the interface's shape, and as `records` of that
 * shape with their time.
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
 * The observations that the points of a token are made of (parameters `token`, `from` and `to` as above), in no order,
 * each with the table's part that holds it: all of a bucket's, where `pointsSql` has the first.
 */
export function observationsSql(interval: Interval): string {
  const { table, time, isOfTier } = toTier(interval)
  const bucket = interval === '5m' ? "toStartOfInterval(observed_at, INTERVAL 5 MINUTE, 'UTC')" : time
  return `SELECT ${bucket} AS bucket, observed_at AS as_of, ${VALUES}, _part FROM ${table} FINAL WHERE ${isOfTier} AND ${RANGE(time)}`
}

/** How many points there are in [from, to), grid times in Unix milliseconds; at most `limit` are counted. */
export async function countPoints(
  db: Database,
  interval: Interval,
  params: TimeRange & { readonly token: number; readonly limit: number },
): Promise<number> {
  if (params.from >= params.to) return 0
  return countRows(db, { name: 'counted-prices', sql: pointsSql(interval).columns, params: { ...params } })
}
