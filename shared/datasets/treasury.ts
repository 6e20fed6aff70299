import { z } from 'zod'
import type { Treasury } from '../registry/entities.ts'
import { MOST_HELD_USD, MOST_TOKENS } from './bounds.ts'
import { defineDataset } from './define-dataset.ts'

/** How many whole tokens are held. */
export const heldQuantity = z.number().nonnegative().max(MOST_TOKENS)
/** What they are worth in USD, and what the whole treasury is. */
export const heldValue = z.number().nonnegative().max(MOST_HELD_USD)

const token = z.strictObject({
  symbol: z.string().min(1),
  quantity: heldQuantity,
  value_usd: heldValue.nullable(),
})

type Token = z.infer<typeof token>

/** What a holding is to its DAO: a token of its own, a stablecoin of the registry's list, or anything else. */
export const HOLDING_KINDS = ['own', 'stable', 'other'] as const
export type HoldingKind = (typeof HOLDING_KINDS)[number]

/**
 * One asset on one chain at one address. `chain` is a slug of the registry, or a word of the source's own where it tells no
 * chain; address and contract are null where it does not tell them. `price_source` is whose price the value is of.
 */
const holding = token.extend({
  chain: z.string().min(1),
  address: z.string().min(1).nullable(),
  contract: z.string().min(1).nullable(),
  price_source: z.string().min(1).nullable(),
  kind: z.enum(HOLDING_KINDS),
})

export type HoldingRow = z.infer<typeof holding>

/** Tokens that anybody sends to an address unasked. */
const MOST_SPAM = 1e7

/** The same values added up in another order differ by so much of them at most. */
const ROUNDING = 1e-9

/**
 * Everything that a DAO's treasury holds as of a day: its own tokens too. `quantity` is in whole tokens; `value_usd` of
 * a token is null where no source prices it, and such tokens come last. The total is the sum of the known values, added
 * in the order of the list. `holdings` are what the tokens were added up from; none where the source only tells these.
 * `spam_count` is how many tokens were left out as spam, null where the source does not tell them. `source` names the
 * provider: values of two sources are not compared with each other.
 */
export const daoTreasuryRow = z
  .strictObject({
    dao: z.number().int().nonnegative(),
    observed_at: z.iso.datetime(),
    value_usd: heldValue,
    tokens: z.array(token).min(1).refine(isDescending, 'not in descending order of value'),
    holdings: z.array(holding),
    spam_count: z.int().nonnegative().max(MOST_SPAM).nullable(),
    source: z.string().min(1),
  })
  .refine(({ value_usd, tokens }) => value_usd === sumValues(tokens), {
    path: ['value_usd'],
    error: 'not the sum of the tokens',
  })
  .refine(({ value_usd, holdings }) => holdings.length === 0 || isAbout(sumValues(holdings), value_usd), {
    path: ['holdings'],
    error: 'do not add up to the total',
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
  needsDaos: true,
  entity: 'dao',
  isCollected: true,
  hasHistory: true,
  series: { table: 'dao_treasuries', entity: 'dao', time: 'observed_at' },
})

/** The sum of the known values in USD, in the order given: adding floats in another order may end in another digit. */
export function sumValues(tokens: readonly Pick<Token, 'value_usd'>[]): number {
  return tokens.reduce((sum, { value_usd }) => sum + (value_usd ?? 0), 0)
}

function isAbout(one: number, other: number): boolean {
  return Math.abs(one - other) <= ROUNDING * other
}

function isDescending(tokens: readonly Token[]): boolean {
  const rank = ({ value_usd }: Token) => value_usd ?? -1
  return tokens.every((token, index) => rank(token) <= rank(tokens[index - 1] ?? token))
}
