import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { toStaleAt } from '../../shared/store/store.ts'

/** The moment of `asOf` in statements; the parameter is in Unix milliseconds. */
const AT = "fromUnixTimestamp64Milli({at: Int64}, 'UTC')"

/** The condition that a row was stored `agoMs` before the moment `at` and was not stale then (docs/contract.md, section 8). */
export const isCurrentAt = (column: string, staleAfterMs: number, agoMs = 0): string => {
  const at = agoMs === 0 ? AT : `(${AT} - INTERVAL ${agoMs} MILLISECOND)`
  return `(${column} <= ${at} AND ${column} > ${at} - INTERVAL ${staleAfterMs} MILLISECOND)`
}

/** The last row of each entity that was not stale at the moment, as a table to join. */
export const lastCurrentRows = (dataset: DatasetFacts): string => {
  const { table, entity, time } = dataset.series
  return `(
  SELECT * FROM ${table} FINAL WHERE ${isCurrentAt(time, toStaleAt(0, dataset))}
  ORDER BY ${time} DESC LIMIT 1 BY ${entity}
)`
}

const HOUR_MS = 3_600_000
const STALE_MS = toStaleAt(0, tokenPrices)
/** The range of each change in hours. */
const CHANGES = { '1h': 1, '24h': 24, '7d': 7 * 24, '30d': 30 * 24, '60d': 60 * 24, '90d': 90 * 24 } as const
const HOURS = Object.values(CHANGES)

const windowOf = (hours: number) => isCurrentAt('observed_at', STALE_MS, hours * HOUR_MS)

/** The price and the volume of the last observation in a window. */
const lastOf = (hours: number) =>
  `argMaxIf(tuple(toNullable(price), volume_24h), observed_at, ${windowOf(hours)}) AS before_${hours}`

const changeOf = (member: 1 | 2, hours: number) =>
  `100 * (newest.${member + 1} / nullIf(before_${hours}.${member}, 0) - 1)`

/**
 * The quote of each token as it was known at a moment, from the stored series. A change compares with the quote that was
 * known at the start of its range. Columns that the series do not have, such as the maximum supply, are null.
 */
export const PAST_QUOTES = `(
  SELECT token, newest.1 AS observed_at, assumeNotNull(newest.2) AS price, newest.3 AS volume_24h, newest.4 AS market_cap,
    newest.5 AS total_supply, newest.6 AS circulating_supply, ${changeOf(2, 24)} AS volume_change_24h,
    ${Object.entries(CHANGES)
      .map(([name, hours]) => `${changeOf(1, hours)} AS percent_change_${name}`)
      .join(',\n    ')},
    ${['max_supply', 'fully_diluted_market_cap', 'tvl'].map((name) => `CAST(NULL, 'Nullable(Float64)') AS ${name}`).join(', ')}
  FROM
  (
    SELECT token,
      argMaxIf(tuple(observed_at, toNullable(price), volume_24h, market_cap, total_supply, circulating_supply), observed_at,
        ${windowOf(0)}) AS newest,
      ${HOURS.map(lastOf).join(',\n      ')}
    FROM token_prices FINAL
    WHERE ${[0, ...HOURS].map(windowOf).join(' OR ')}
    GROUP BY token
    HAVING countIf(${windowOf(0)}) > 0
  )
)`
