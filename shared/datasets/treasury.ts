import { z } from 'zod'
import type { Treasury } from '../registry/entities.ts'
import { MOST_HELD_USD, MOST_TOKENS } from './bounds.ts'
import { defineDataset } from './define-dataset.ts'

/** The held quantity, in whole tokens. */
export const heldQuantity = z.number().nonnegative().max(MOST_TOKENS)
/** The value of a holding or of a whole treasury, in USD. */
export const heldValue = z.number().nonnegative().max(MOST_HELD_USD)

const token = z.strictObject({
  symbol: z.string().min(1),
  quantity: heldQuantity,
  value_usd: heldValue.nullable(),
})

type Token = z.infer<typeof token>

/** The relation of a holding to its DAO: its own token, a stablecoin of the registry's list, or any other token. */
export const HOLDING_KINDS = ['own', 'stable', 'other'] as const
export type HoldingKind = (typeof HOLDING_KINDS)[number]

/**
 * A holding of one asset on one chain at one address. `chain` is a slug of the registry, or the source's own word if it
 * names no chain. Address and contract are null if the source does not report them. `price_source` is the source of the
 * price.
 */
const holding = token.extend({
  chain: z.string().min(1),
  address: z.string().min(1).nullable(),
  contract: z.string().min(1).nullable(),
  price_source: z.string().min(1).nullable(),
  kind: z.enum(HOLDING_KINDS),
})

export type HoldingRow = z.infer<typeof holding>

/** Unsolicited tokens sent to an address. */
const MOST_SPAM = 1e7

/** Relative tolerance for sums of the same values in another order. */
const ROUNDING = 1e-9

/**
 * All holdings of a DAO's treasury as of a day, including its own tokens. `quantity` is in whole tokens. `value_usd` of
 * a token is null if no source has its price; such tokens come last. The total is the sum of the known values in the
 * order of the list. `holdings` are the parts of the tokens; empty if the source reports only tokens. `spam_count` is
 * the number of omitted spam tokens, null if the source does not detect them. `source` names the provider: values of
 * two sources are not compared.
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

/** DAO treasuries: a row per DAO and day. Every day is stored; the API serves the newest. */
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

/**
 * The sum of the known values in USD, in the order of the list: another order of additions may change the last digit.
 */
export function sumValues(tokens: readonly Pick<Token, 'value_usd'>[]): number {
  return tokens.reduce((sum, { value_usd }) => sum + (value_usd ?? 0), 0)
}

function isAbout(a: number, b: number): boolean {
  return Math.abs(a - b) <= ROUNDING * b
}

function isDescending(tokens: readonly Token[]): boolean {
  const rank = ({ value_usd }: Token) => value_usd ?? -1
  return tokens.every((token, index) => rank(token) <= rank(tokens[index - 1] ?? token))
}
