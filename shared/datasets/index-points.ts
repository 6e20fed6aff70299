import { z } from 'zod'
import { toIdSql } from '../ids.ts'
import { isWithin } from '../intervals.ts'
import { idValue, timeValue, usd } from '../record-values.ts'
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
  title: 'Index',
  cadence: '5m',
  table: 'index_points',
  row: indexPointRow,
  entities: ({ index }) => [index],
  entity: 'index_key',
  computedFrom: [tokenPrices],
  hasHistory: true,
  series: { table: 'index_points', entity: 'index_key', time: 'observed_at' },
})

/** A point of the Index. */
export const indexPoint = z
  .strictObject({
    _id: idValue.describe('Id of the point.'),
    valueUsd: usd.meta({ description: 'Value of the basket in US dollars.' }),
    composition: idValue.meta({ description: 'Id of the active composition.' }),
    createdAt: timeValue.meta({ description: 'Start of the 5-minute slot.' }),
  })
  .meta({ id: 'IndexPoint', description: 'Value of the Index in one slot.' })

/** SQL of the members of a point, from a row of `selectIndexPoints`. `{id: String}` is the id of the index. */
export const INDEX_POINT_VALUES = {
  _id: toIdSql("'index'", '{id: String}', 'toUnixTimestamp64Milli(created_at)'),
  valueUsd: 'value_usd',
  composition: 'composition',
  createdAt: 'created_at',
} as const

/**
 * SQL for the points of an index in order: its key, `created_at`, `as_of`, `value_usd` and `composition`. By default of
 * the indexes `{entities: Array(UInt64)}` in a range (`isWithin`).
 */
export const selectIndexPoints = (isInRange: (time: string) => string = isWithin): string =>
  `SELECT index_key, created_at, observed_at AS as_of, value_usd, composition
FROM index_points FINAL
WHERE index_key IN {entities: Array(UInt64)} AND ${isInRange('created_at')}
ORDER BY index_key, created_at`

/**
 * The first price of each member in each 5-minute slot of a range: `token`, `slot`, `first_price` and `first_at`. A
 * slot without an observation has no row. Parameters: `tokens`, and `from` and `to` in Unix milliseconds.
 */
export const SLOT_PRICES = `SELECT token, toStartOfInterval(observed_at, INTERVAL 5 MINUTE, 'UTC') AS slot, argMin(price, observed_at) AS first_price,
      min(observed_at) AS first_at
    FROM token_prices FINAL
    WHERE has({tokens: Array(UInt64)}, token) AND ${isWithin('observed_at')}
    GROUP BY token, slot`
