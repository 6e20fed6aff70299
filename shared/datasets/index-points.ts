import { z } from 'zod'
import { defineDataset } from './define-dataset.ts'

/**
 * What the basket of the index is worth in USD in the 5-minute slot that begins at `created_at`, under the composition
 * in force then; `observed_at` is the time of the newest price in it. A retracted row takes back the point of its slot;
 * of several rows the one that was computed last counts.
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
  series: { table: 'index_points', entity: 'index_key', time: 'observed_at' },
})
