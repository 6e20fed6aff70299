import { z } from 'zod'
import { MOST_HELD_USD, MOST_MARKET_USD, MOST_PRICE_USD, MOST_TOKENS } from './bounds.ts'
import { defineDataset } from './define-dataset.ts'

/** The price of one token in USD, whoever says it. */
export const tokenPrice = z.number().positive().max(MOST_PRICE_USD)

/** Nothing loses more than all of its value. */
const change = z.number().min(-100).max(1e9).nullable()
const amount = z.number().nonnegative().max(MOST_MARKET_USD).nullable()

/**
 * A supply. Sources say 0 where they do not know it, but a token with a price has one: 0 becomes null (docs/contract.md, section
 * 4). It is done without zod's `transform`, with which checking a row took half as long again; back-fills check
 * millions.
 */
const toKnown = (value: number | null) => (value === 0 ? null : value)
const amountAbove0 = amount.overwrite(toKnown)
const supply = z.number().nonnegative().max(MOST_TOKENS).nullable().overwrite(toKnown)

/**
 * One observation of a token on the market: what a latest or a historical quote says. `observed_at` is the
 * observation's own time. Money is in USD, supplies in whole tokens, changes in percent; unknown is null, but a quote
 * without a price says nothing and is rejected, and so is one whose price is not above 0. Another value that cannot be, such
 * as a negative volume or a loss of more than 100 %, is left out, and the quote keeps what else it says.
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

/** Token market data: rows go through `token_quotes_in`, whose views fill the series and the latest quotes. */
export const tokenPrices = defineDataset({
  name: 'prices',
  cadence: '5m',
  table: 'token_quotes_in',
  row: tokenPriceRow,
  // One that has ended is not quoted any more; its past is asked for as everybody's.
  entities: ({ tokens }) =>
    tokens.filter(({ live, livePrice, ended, cmcId, coingeckoId }) =>
      live ? livePrice : ended !== null && (cmcId !== null || coingeckoId !== null),
    ),
  entity: 'token',
  isCollected: true,
  hasOwnTimes: true,
  hasHistory: true,
  series: { table: 'token_prices', entity: 'token', time: 'observed_at' },
})
