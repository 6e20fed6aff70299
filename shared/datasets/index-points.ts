import { z } from 'zod'
import { defineDataset } from './define-dataset.ts'
import { tokenPrices } from './token-prices.ts'

/**
 * The value of the index basket in USD in the 5-minute slot that starts at `created_at`, under the composition of that
 * time. `observed_at` is the time of the newest price in it. A retracted row deletes the point of its slot. Of several
 * rows the one computed last wins.
 */
export const indexPointRow = z.strictObject({
  index_key: z.number().int().nonnegative(),
  created_at: z.iso.datetime(),
  observed_at: z.iso.datetime(),
  value_usd: z.number().nonnegative(),
  composition: z.string().regex(/^[0-9a-f]{24}$/, 'must be the id of a composition'),
  is_retracted: z.boolean(),
  computed_at: z.iso.datetime(),
})

export type IndexPointRow = z.infer<typeof indexPointRow>

/** The index over time: computed from stored prices, not collected. */
export const indexPoints = defineDataset({
  name: 'index',
  cadence: '5m',
  table: 'index_points',
  row: indexPointRow,
  entities: ({ index }) => [index],
  entity: 'index_key',
  computedFrom: [tokenPrices],
  hasHistory: true,
  series: { table: 'index_points', entity: 'index_key', time: 'observed_at' },
})

/**
 * The first price of each member in each 5-minute slot of a range: `token`, `slot`, `first_price` and `first_at`. A
 * slot without an observation has no row. Parameters: `tokens`, and `from` and `to` in Unix milliseconds.
 */
export const SLOT_PRICES = `SELECT token, toStartOfInterval(observed_at, INTERVAL 5 MINUTE, 'UTC') AS slot, argMin(price, observed_at) AS first_price,
      min(observed_at) AS first_at
    FROM token_prices FINAL
    WHERE has({tokens: Array(UInt64)}, token)
      AND observed_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
      AND observed_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
    GROUP BY token, slot`
