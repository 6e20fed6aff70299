import { z } from 'zod'
import type { Treasury } from '../registry/entities.ts'
import { defineDataset } from './define-dataset.ts'

const holding = z.strictObject({
  symbol: z.string().min(1),
  quantity: z.number().nonnegative(),
  value_usd: z.number().nonnegative().nullable(),
})

type Holding = z.infer<typeof holding>

/**
 * Everything that a DAO's treasury holds as of a day: its own tokens too. `quantity` is in whole tokens; `value_usd` of
 * a token is null where no source prices it, and such tokens come last. The total is the sum of the known values, added
 * in the order of the list. `source` names the provider: values of two sources are not compared with each other.
 */
export const daoTreasuryRow = z
  .strictObject({
    dao: z.number().int().nonnegative(),
    observed_at: z.iso.datetime(),
    value_usd: z.number().nonnegative(),
    tokens: z.array(holding).min(1).refine(isDescending, 'not in descending order of value'),
    source: z.string().min(1),
  })
  .refine(({ value_usd, tokens }) => value_usd === sumValues(tokens), {
    path: ['value_usd'],
    error: 'not the sum of the tokens',
  })

export type DaoTreasuryRow = z.infer<typeof daoTreasuryRow>

/** Whether an address is known. */
export const hasAddress = ({ address }: Treasury): boolean => address !== ''

/** DAO treasuries: a row per DAO and day; every day is kept, the newest is what is served. */
export const daoTreasury = defineDataset({
  name: 'treasury',
  cadence: '1d',
  table: 'dao_treasuries',
  row: daoTreasuryRow,
  entities: ({ daos }) =>
    daos.filter(({ live, treasuries, defillama }) => live && (defillama !== null || treasuries.some(hasAddress))),
  entity: 'dao',
  isCollected: true,
  series: { table: 'dao_treasuries', entity: 'dao', time: 'observed_at' },
})

/** The sum of the known values in USD, in the order given: adding floats in another order may end in another digit. */
export function sumValues(tokens: readonly Pick<Holding, 'value_usd'>[]): number {
  return tokens.reduce((sum, { value_usd }) => sum + (value_usd ?? 0), 0)
}

function isDescending(tokens: readonly Holding[]): boolean {
  const rank = ({ value_usd }: Holding) => value_usd ?? -1
  return tokens.every((token, index) => rank(token) <= rank(tokens[index - 1] ?? token))
}
