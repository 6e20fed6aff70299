import type { Interval } from '../../shared/intervals.ts'
import { toObject } from '../records/columns.ts'
import { POINT, priceRow, toTier, VALUES } from './points.ts'

// Lets the sorting key limit the range if a page continues in the middle of a token.
const OF_SEVERAL = (column: string) => `token IN {tokens: Array(UInt64)}
  AND ${column} >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') AND ${column} < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
  AND (token != {resumed: UInt64} OR ${column} >= fromUnixTimestamp64Milli({resume: Int64}, 'UTC'))`

const FINE_OF_SEVERAL = `
SELECT token, toDateTime64(toStartOfInterval(observed_at, INTERVAL 5 MINUTE, 'UTC'), 3, 'UTC') AS bucket, observed_at AS as_of, ${VALUES}
FROM token_prices FINAL
WHERE ${OF_SEVERAL('observed_at')}
ORDER BY token, observed_at
LIMIT 1 BY token, bucket
LIMIT {limit: UInt64}`

const coarseOfSeveral = ({ table, isOfTier }: ReturnType<typeof toTier>) => `
SELECT token, toDateTime64(bucket_at, 3, 'UTC') AS bucket, observed_at AS as_of, ${VALUES}
FROM ${table} FINAL
WHERE ${isOfTier} AND ${OF_SEVERAL('bucket_at')}
ORDER BY token, interval_seconds, bucket_at
LIMIT {limit: UInt64}`

const named = (list: string) => `transform(token, {keys: Array(UInt64)}, {${list}: Array(String)}, '')`
const AS_ROW = toObject(priceRow, `${named('ids')}, ${named('names')}, ${named('symbols')}, ${POINT}`)

const toPoints = (interval: Interval) => (interval === '5m' ? FINE_OF_SEVERAL : coarseOfSeveral(toTier(interval)))

/** SQL that counts the points of `tablePointsSql` that fulfil `isCounted`, a condition on `p`. */
export const countPointsSql = (interval: Interval, join: string, isCounted: string): string =>
  `SELECT count() AS points FROM (${toPoints(interval)}) AS p ${join} WHERE ${isCounted}`

/** SQL for the tokens and buckets of the same points. */
export const placesSql = (interval: Interval): string =>
  `SELECT token, toUnixTimestamp64Milli(bucket) AS at FROM (${toPoints(interval)})`

/**
 * SQL for the points of several tokens, token after token. Parameters: `tokens`; `from` and `to` in Unix milliseconds
 * on the grid; `limit`; for token `resumed` only points from `resume` on; `keys` with the `ids`, `names` and `symbols`
 * of all.
 */
export function tablePointsSql(interval: Interval): { sql: string; rowHash: string } {
  return {
    sql: `SELECT *, tuple(token, toUnixTimestamp64Milli(bucket)) AS page_key,
  ${AS_ROW} AS record
FROM (${toPoints(interval)})`,
    rowHash: `sipHash64(tuple(token, bucket, as_of, ${VALUES}))`,
  }
}
