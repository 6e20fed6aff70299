import { z } from 'zod'
import { MOST_HELD_USD, MOST_MARKET_USD, MOST_PRICE_USD, MOST_TOKENS } from './bounds.ts'
import { defineDataset, type StoredRows } from './define-dataset.ts'

/** The price of one token in USD, from any source. */
export const tokenPrice = z.number().positive().max(MOST_PRICE_USD)

/** No asset loses more than all of its value. */
const change = z.number().min(-100).max(1e9).nullable()
const amount = z.number().nonnegative().max(MOST_MARKET_USD).nullable()

/**
 * A supply. Sources send 0 for an unknown supply, but a token with a price has one, so 0 becomes null
 * (docs/contract.md, section 4). Uses `overwrite`, because zod's `transform` made the validation of a row take 50 %
 * longer, and back-fills validate millions.
 */
const zeroToNull = (value: number | null) => (value === 0 ? null : value)
// `not` names the replaced value in the JSON Schema, from which rows are validated.
const NOT_0 = { not: { const: 0 } }
const amountAbove0 = amount.overwrite(zeroToNull).meta(NOT_0)
const supply = z.number().nonnegative().max(MOST_TOKENS).nullable().overwrite(zeroToNull).meta(NOT_0)

/**
 * A market observation of a token from a latest or historical quote. `observed_at` is the observation's own time. Money
 * is in USD, supplies in whole tokens, changes in percent; unknown is null. A quote without a price above 0 is
 * rejected. Other impossible values, such as a negative volume or a loss of more than 100 %, become null, and the rest
 * of the quote is stored.
 */
export const tokenPriceRow = z.strictObject({
  token: z.number().int().nonnegative(),
  observed_at: z.iso.datetime(),
  is_latest: z.boolean(),
  price: tokenPrice,
  volume_24h: amount,
  market_cap: amountAbove0,
  total_supply: supply,
  circulating_supply: supply,
  max_supply: supply,
  fully_diluted_market_cap: amountAbove0,
  volume_change_24h: change,
  percent_change_1h: change,
  percent_change_24h: change,
  percent_change_7d: change,
  percent_change_30d: change,
  percent_change_60d: change,
  percent_change_90d: change,
  tvl: z.number().nonnegative().max(MOST_HELD_USD).nullable(),
})

export type TokenPriceRow = z.infer<typeof tokenPriceRow>

/** The values that a stored price may lack. Of two prices of the same time, the more complete one is stored. */
const KNOWN = ['volume_24h', 'market_cap', 'total_supply', 'circulating_supply'] as const
const WITHIN = "observed_at >= {from: DateTime64(3, 'UTC')} AND observed_at <= {to: DateTime64(3, 'UTC')}"

/** How far the clock of a provider may be ahead, in milliseconds. */
export const MOST_AHEAD_MS = 2 * 60_000

/**
 * SQL: whether `run`, the start of a run, is that of the run that collected the price `p`. The version of a price has the
 * minutes from its time to the start of its run.
 */
export const IS_RUN_OF_PRICE = `run > p.at - ${MOST_AHEAD_MS} AND intDiv(greatest(run - p.at, 0), 60000) = p.minutes`

/** The series with its sources. */
const storedPrices: StoredRows = {
  columns: {
    ...{ token: 'UInt64', observed_at: "DateTime64(3, 'UTC')", price: 'Float64' },
    ...Object.fromEntries(KNOWN.map((name) => [name, 'Nullable(Float64)'])),
    ...{ provider: 'String', agreement: 'String' },
  },
  keys: ['token', 'observed_at'],
  sql: `SELECT p.token AS token, p.observed_at AS observed_at, p.price AS price, ${KNOWN.map((name) => `p.${name} AS ${name}`).join(', ')},
  s.provider AS provider, s.agreement AS agreement,
  ifNull(arrayFirstOrNull(run -> ${IS_RUN_OF_PRICE}, {runs: Array(Int64)}), p.at + p.minutes * 60000) AS collected_at_ms
FROM (
  SELECT token, observed_at, price, ${KNOWN.join(', ')}, toUnixTimestamp64Milli(observed_at) AS at, toInt64(version % 268435456) AS minutes
  FROM token_prices FINAL WHERE ${WITHIN}
) AS p
LEFT JOIN (
  SELECT token, observed_at, toString(provider) AS provider, toString(agreement) AS agreement FROM price_sources FINAL WHERE ${WITHIN}
) AS s ON s.token = p.token AND s.observed_at = p.observed_at`,
  defaults: { agreement: 'single' },
  rank: (row) => KNOWN.filter((name) => row[name] !== null).length,
  isKept: ({ agreement }) => agreement === 'released',
}

/** Token market data. Rows are inserted into `token_quotes_in`; its views fill the series and the latest quotes. */
export const tokenPrices = defineDataset({
  name: 'prices',
  title: 'Prices',
  cadence: '5m',
  table: 'token_quotes_in',
  row: tokenPriceRow,
  // Ended tokens have no current quotes, but their history is collected like that of live tokens.
  entities: ({ tokens }) =>
    tokens.filter(({ live, livePrice, ended, cmcId, coingeckoId }) =>
      live ? livePrice : ended !== null && (cmcId !== null || coingeckoId !== null),
    ),
  entity: 'token',
  isCollected: true,
  isAttributed: true,
  hasOwnTimes: true,
  storedRows: storedPrices,
  hasHistory: true,
  rowStep: ['1h', '1d'],
  series: { table: 'token_prices', entity: 'token', time: 'observed_at' },
})
