import { z } from 'zod'
import { defineDataset } from './define-dataset.ts'

const known = z.number().finite().nullable()

/**
 * A supply. Sources say 0 where they do not know it, but a token with a price has one: 0 becomes null (contract section
 * 4). It is done without zod's `transform`, with which checking a row took half as long again; back-fills check
 * millions.
 */
const knownAbove0 = known.overwrite((value) => (value === 0 ? null : value))

/**
 * One observation of a token on the market: what a latest or a historical quote says. `observed_at` is the
 * observation's own time. Money is in USD, supplies in whole tokens, changes in percent; unknown is null, but a quote
 * without a price says nothing and is rejected.
 */
export const tokenPriceRow = z.strictObject({
  token: z.number().int().nonnegative(),
  observed_at: z.iso.datetime(),
  is_latest: z.boolean(),
  price: z.number().positive(),
  volume_24h: known,
  market_cap: knownAbove0,
  total_supply: knownAbove0,
  circulating_supply: knownAbove0,
  max_supply: knownAbove0,
  fully_diluted_market_cap: knownAbove0,
  volume_change_24h: known,
  percent_change_1h: known,
  percent_change_24h: known,
  percent_change_7d: known,
  percent_change_30d: known,
  percent_change_60d: known,
  percent_change_90d: known,
  tvl: known,
})

export type TokenPriceRow = z.infer<typeof tokenPriceRow>

/** Token market data: rows go through `token_quotes_in`, whose views fill the series and the latest quotes. */
export const tokenPrices = defineDataset({
  name: 'prices',
  cadence: '5m',
  table: 'token_quotes_in',
  row: tokenPriceRow,
  entities: (registry) => registry.tokens.filter((token) => token.live && token.livePrice),
  entity: 'token',
  isCollected: true,
  hasOwnTimes: true,
  series: { table: 'token_prices', entity: 'token', time: 'observed_at' },
})
