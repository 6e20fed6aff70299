import { z } from 'zod'
import type { Database } from '../../../shared/clickhouse.ts'
import type { Interval } from '../../../shared/intervals.ts'
import { numberOrNull, timeValue } from '../../values.ts'

/** What a point says. */
export const pointQuote = z.strictObject({
  USD: z.strictObject({
    price: z.number(),
    volume_24h: numberOrNull,
    market_cap: numberOrNull,
    total_supply: numberOrNull,
    circulating_supply: numberOrNull,
    timestamp: timeValue,
  }),
})

/** A point's token by its key, and the start of its bucket in Unix milliseconds. */
export interface PricePlace {
  readonly token: number
  readonly at: number
}

/** Where the points of an interval are read; the 5-minute tier is the raw series itself. */
const TABLES: Readonly<Record<Interval, string>> = {
  '5m': 'token_prices',
  '30m': 'token_prices_30m',
  '1h': 'token_prices_1h',
  '4h': 'token_prices_4h',
  '1d': 'token_prices_1d',
  '7d': 'token_prices_7d',
}

const RANGE = (column: string) => `token = {token: UInt64}
  AND ${column} >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') AND ${column} < fromUnixTimestamp64Milli({to: Int64}, 'UTC')`

const VALUES = 'price, volume_24h, market_cap, total_supply, circulating_supply'

const QUOTE = `Tuple(USD Tuple(price Float64, volume_24h Nullable(Float64), market_cap Nullable(Float64),
  total_supply Nullable(Float64), circulating_supply Nullable(Float64), timestamp DateTime64(3, 'UTC')))`

const QUOTED = `CAST(tuple(tuple(${VALUES}, as_of)), $quote$${QUOTE}$quote$)`

// `from` and `to` lie on the grid of the interval, so that a range of observations is a range of whole buckets.
const FINE = `
SELECT toDateTime64(toStartOfInterval(observed_at, INTERVAL 5 MINUTE, 'UTC'), 3, 'UTC') AS bucket, observed_at AS as_of, ${VALUES}
FROM token_prices FINAL
WHERE ${RANGE('observed_at')}
ORDER BY token, observed_at
LIMIT 1 BY bucket
LIMIT {limit: UInt32}`

const coarse = (table: string) => `
SELECT toDateTime64(bucket_at, 3, 'UTC') AS bucket, observed_at AS as_of, ${VALUES}
FROM ${table} FINAL
WHERE ${RANGE('bucket_at')}
ORDER BY token, bucket_at
LIMIT {limit: UInt32}`

/**
 * The points of a token (parameters `token`, `from` and `to` in Unix milliseconds on the grid, `limit`), oldest first:
 * as `columns`, as `rows` of the interface's shape, and as `records` of that shape with their time.
 */
export function pointsSql(interval: Interval): { columns: string; rows: string; records: string } {
  const columns = interval === '5m' ? FINE : coarse(TABLES[interval])
  return {
    columns,
    rows: `SELECT bucket AS timestamp, ${QUOTED} AS quote FROM (${columns})`,
    records: `SELECT as_of, CAST(tuple(bucket, ${QUOTED}), $record$Tuple(timestamp DateTime64(3, 'UTC'), quote ${QUOTE})$record$) AS record
FROM (${columns})`,
  }
}

const ROW = `Tuple(id String, name String, symbol String, timestamp DateTime64(3, 'UTC'), quote ${QUOTE})`

// The sorting key narrows the range where a page goes on in the middle of a token.
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

const coarseOfSeveral = (table: string) => `
SELECT token, toDateTime64(bucket_at, 3, 'UTC') AS bucket, observed_at AS as_of, ${VALUES}
FROM ${table} FINAL
WHERE ${OF_SEVERAL('bucket_at')}
ORDER BY token, bucket_at
LIMIT {limit: UInt64}`

/**
 * The points of several tokens (parameters `tokens`, `from` and `to` as above, `limit`; of token `resumed` those from
 * `resume` on; `keys` with the `ids`, `names` and `symbols` of all), token after token.
 */
export function tablePointsSql(interval: Interval): { sql: string; rowHash: string } {
  const points = interval === '5m' ? FINE_OF_SEVERAL : coarseOfSeveral(TABLES[interval])
  const named = (list: string) => `transform(token, {keys: Array(UInt64)}, {${list}: Array(String)}, '')`
  return {
    sql: `SELECT *, toJSONString(tuple(token, toUnixTimestamp64Milli(bucket))) AS page_key,
  CAST(tuple(${named('ids')}, ${named('names')}, ${named('symbols')}, bucket, ${QUOTED}), $record$${ROW}$record$) AS record
FROM (${points})`,
    rowHash: `sipHash64(tuple(token, bucket, as_of, ${VALUES}))`,
  }
}

/** The time of a token's newest observation in Unix milliseconds; null while there is none. */
export async function readNewest(db: Database, token: number): Promise<number | null> {
  const [row] = await db.rows({
    name: 'newest-price',
    sql: `SELECT toUnixTimestamp64Milli(observed_at) AS newest FROM token_prices
WHERE token = {token: UInt64}
ORDER BY token DESC, observed_at DESC
LIMIT 1`,
    params: { token },
    settings: { max_threads: 1 },
    schema: z.object({ newest: z.int() }),
  })
  return row?.newest ?? null
}

/** Whether there is a point in [from, to), grid times in Unix milliseconds. */
export async function hasPoints(
  db: Database,
  interval: Interval,
  params: { token: number; from: number; to: number },
): Promise<boolean> {
  if (params.from >= params.to) return false
  const rows = await db.rows({
    name: 'more-prices',
    sql: pointsSql(interval).columns,
    params: { ...params, limit: 1 },
    settings: { max_threads: 1 },
    schema: z.unknown(),
  })
  return rows.length > 0
}
