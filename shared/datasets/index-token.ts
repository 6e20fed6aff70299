import { z } from 'zod'
import { timeValue, usd } from '../record-values.ts'
import { MOST_PRICE_USD } from './bounds.ts'
import { defineDataset } from './define-dataset.ts'

const decimal = z.string().regex(/^\d+(\.\d*[1-9])?$/, 'must be a decimal number')

/**
 * The Index Token at one block: `created_at` is the block's time, `value` the ether locked in its contract and
 * `total_supply` the tokens in circulation, both as exact decimals; `value_usd` the price of one token by `eth_usd`.
 */
export const indexTokenRow = z.strictObject({
  index_key: z.number().int().nonnegative(),
  created_at: z.iso.datetime(),
  block_number: z.number().int().nonnegative(),
  value: decimal,
  total_supply: decimal,
  value_usd: z.number().nonnegative().max(MOST_PRICE_USD),
  eth_usd: z.number().positive().max(MOST_PRICE_USD),
  eth_source: z.string().min(1),
})

export type IndexTokenRow = z.infer<typeof indexTokenRow>

/** Readings of the Index Token. All are stored; the API serves the newest. */
export const indexToken = defineDataset({
  name: 'index-token',
  title: 'Index Token',
  cadence: '5m',
  table: 'index_token',
  row: indexTokenRow,
  entities: ({ index }) => [index],
  entity: 'index_key',
  isCollected: true,
  lagsBehindSlot: true,
  series: { table: 'index_token', entity: 'index_key', time: 'created_at' },
})

const decimalText = z.string().regex(/^\d+(\.\d+)?$/)

/** The Index Token at one block, with exact decimals. */
export const indexTokenRecord = z
  .strictObject({
    value: decimalText.meta({ description: 'Ether locked in the Index Token contract: an exact decimal.' }),
    totalSupply: decimalText.meta({ description: 'Index Tokens in circulation: an exact decimal.' }),
    valueUsd: usd.meta({ description: 'Price of one Index Token in USD.' }),
    createdAt: timeValue.meta({ description: 'Time of the block that was read.' }),
  })
  .meta({ id: 'IndexToken', description: 'The Index Token as it was last read.' })

/** SQL for the readings that fulfil a condition, of the indexes `{entities: Array(UInt64)}`. */
export const selectIndexToken = (isSelected: string): string =>
  `SELECT index_key, value, total_supply, value_usd, created_at FROM index_token FINAL
WHERE index_key IN {entities: Array(UInt64)} AND ${isSelected}`
