import { z } from 'zod'
import { INTERVAL_SECONDS, type Interval, isWithin } from '../intervals.ts'
import { numberIn, observationSource, optionalSource, timeValue, usd } from '../record-values.ts'
import { tokenPrices } from './token-prices.ts'

const tokens = numberIn('tokens')

/** The values of a point. */
const quote = z
  .strictObject({
    USD: z
      .strictObject({
        price: usd.describe('Price of one token.'),
        volume_24h: usd.nullable().describe('Trading volume of the previous 24 hours on all markets; null if unknown.'),
        market_cap: usd.nullable().describe('Price times circulating supply; null if unknown.'),
        total_supply: tokens.nullable().describe('Total supply in tokens; null if unknown.'),
        circulating_supply: tokens.nullable().describe('Circulating supply in tokens; null if unknown.'),
        timestamp: timeValue.describe('Time of the observation itself.'),
      })
      .describe('In US dollars.'),
  })
  .meta({ id: 'PriceQuote', description: 'Observed values by currency.' })

/** A point of a series of prices: the first observation of its bucket. */
export const pricePoint = z
  .strictObject({
    timestamp: timeValue.describe('Start of the bucket.'),
    quote: quote.describe('The first observation of the bucket.'),
  })
  .describe('One bucket of a series of prices.')

export const sourcedPoint = pricePoint.extend({ source: observationSource })

/** A point in the documentation. */
export const documentedPoint = pricePoint
  .extend({ source: optionalSource })
  .meta({ id: 'PricePoint', description: 'One bucket of a series of prices.' })

/** The columns with the values of an observation, in the order of the quote's members. */
const VALUES = 'price, volume_24h, market_cap, total_supply, circulating_supply'

/**
 * The columns that store the values, by name with their types. A reader that selects these is faster: planning the
 * expressions of the values takes ClickHouse longer than reading a day.
 */
export const STORED_PRICES = {
  price_code: 'Int64',
  circulating_supply: 'Nullable(Float64)',
  market_cap_code: 'Nullable(Int64)',
  volume_24h_code: 'Nullable(Int64)',
  total_supply: 'Nullable(Float64)',
}

/** SQL for the members of a point, from a row of `selectPricePoints`. */
export const PRICE_POINT = `bucket, tuple(tuple(${VALUES}, as_of))`

/** SQL for a hash of a row of `selectPricePoints`. */
export const PRICE_POINT_HASH = `sipHash64(tuple(token, bucket, as_of, ${VALUES}))`

const FINE = "toStartOfInterval(observed_at, INTERVAL 5 MINUTE, 'UTC')"

/**
 * The rows that have the points of an interval: the stored observations for the finest interval, the roll-ups of the
 * interval for the others. `time` is the column by which rows of a token are ordered, `bucket` the start of a row's bucket.
 */
export function toPriceRows(interval: Interval) {
  const { table, time } = tokenPrices.series
  return interval === tokenPrices.cadence
    ? { table, time, isOfInterval: 'true', bucket: FINE }
    : {
        table: 'token_price_rollups',
        time: 'bucket_at',
        isOfInterval: `interval_seconds = ${INTERVAL_SECONDS[interval]}`,
        bucket: 'bucket_at',
      }
}

/** SQL condition on a row: a token of `{entities: Array(UInt64)}` from `{from: Int64}` to `{to: Int64}`, Unix milliseconds. */
export const isInPriceRange = (time: string) => `token IN {entities: Array(UInt64)} AND ${isWithin(time)}`

/**
 * SQL for the observations of an interval in a range, unordered: `token`, `bucket`, `as_of` and the values. A bucket may
 * have several, of which the first is its point. The range lies on the grid of the interval, so a range of observations
 * is a range of complete buckets.
 */
export function selectPrices(interval: Interval, isInRange: (time: string) => string = isInPriceRange): string {
  const { table, time, isOfInterval, bucket } = toPriceRows(interval)
  return `SELECT token, toDateTime64(${bucket}, 3, 'UTC') AS bucket, observed_at AS as_of, ${VALUES}
FROM ${table} FINAL
WHERE ${isOfInterval} AND ${isInRange(time)}`
}

/** SQL for the points of tokens in a range, like `selectPrices`, in the order of token and time. */
export function selectPricePoints(interval: Interval, isInRange?: (time: string) => string): string {
  const prices = selectPrices(interval, isInRange)
  return interval === tokenPrices.cadence
    ? `${prices}\nORDER BY token, observed_at\nLIMIT 1 BY token, bucket`
    : `${prices}\nORDER BY token, interval_seconds, bucket_at`
}

/**
 * SQL that adds the `source` to rows of `selectPrices`. `isRead` is a condition on the rows of `price_sources`,
 * by `token` and `observed_at`.
 */
export const withSources = (rows: string, isRead: string): string =>
  `SELECT p.*, nullIf(toString(s.provider), '') AS source FROM (${rows}) AS p
LEFT JOIN (SELECT token AS token_key, observed_at AS at, provider FROM price_sources FINAL WHERE ${isRead}) AS s
  ON s.token_key = p.token AND s.at = p.as_of`
