import { z } from 'zod'
import { timeValue, uint32, usd, usdOrNull } from '../record-values.ts'
import type { Treasury } from '../registry/entities.ts'
import { MOST_HELD_USD, MOST_TOKENS } from './bounds.ts'
import { defineDataset } from './define-dataset.ts'
import { defineSeries } from './define-series.ts'

/** The held quantity, in whole tokens. */
export const heldQuantity = z.number().nonnegative().max(MOST_TOKENS)
/** The value of a holding or of a whole treasury, in USD. */
export const heldValue = z.number().nonnegative().max(MOST_HELD_USD)

/** The longest stored symbol, in UTF-16 code units. Symbols are labels that anyone can choose. */
export const MOST_SYMBOL = 64
/** The longest stored contract or account: 66 characters on the chains with the longest ones. */
export const MOST_ADDRESS = 128

/** The contract that sources report for the native coin of a chain. */
export const NATIVE_COIN = `0x${'e'.repeat(40)}`

const symbol = z.string().min(1).max(MOST_SYMBOL)
const place = z.string().min(1).max(MOST_ADDRESS)

const token = z.strictObject({
  symbol,
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
  chain: place,
  address: place.nullable(),
  contract: place.nullable(),
  price_source: z.string().min(1).nullable(),
  kind: z.enum(HOLDING_KINDS),
})

export type HoldingRow = z.infer<typeof holding>

/** A holding whose quantity or value cannot be read. Without contract and symbol it can be any asset of the chain. */
const unreadHolding = z.strictObject({
  chain: place,
  address: place.nullable(),
  contract: place.nullable(),
  symbol: z.string().max(MOST_SYMBOL),
})

export type UnreadHolding = z.infer<typeof unreadHolding>

/** Unsolicited tokens sent to an address. */
const MOST_SPAM = 1e7
/** Most contracts of spam tokens that one row lists. */
export const MOST_SPAM_CONTRACTS = 2_000

/** Relative tolerance for sums of the same values in another order. */
const ROUNDING = 1e-9

/**
 * All holdings of a DAO's treasury as of a day, including its own tokens. `quantity` is in whole tokens. `value_usd` of
 * a token is null if no source has its price; such tokens come last. The total is the sum of the known values in the
 * order of the list. `holdings` are the parts of the tokens; empty if the source reports only tokens. `spam_count` is
 * the number of omitted spam tokens, null if the source does not detect them; `spam` has the contracts of the first of
 * them. `unread` are the holdings that cannot be read: with any, the total is a part of the treasury. `source` names the
 * provider: values of two sources are not compared.
 */
export const daoTreasuryRow = z
  .strictObject({
    dao: z.number().int().nonnegative(),
    observed_at: z.iso.datetime(),
    value_usd: heldValue,
    tokens: z.array(token).min(1).refine(isDescending, 'not in descending order of value'),
    holdings: z.array(holding),
    spam_count: z.int().nonnegative().max(MOST_SPAM).nullable(),
    spam: z
      .array(z.strictObject({ chain: place, contract: place }))
      .max(MOST_SPAM_CONTRACTS)
      .default([]),
    unread: z.array(unreadHolding).default([]),
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
  title: 'Treasuries',
  cadence: '1d',
  table: 'dao_treasuries',
  row: daoTreasuryRow,
  entities: ({ daos }) =>
    daos.filter(({ live, treasuries, defillama }) => live && (defillama !== null || treasuries.some(hasAddress))),
  needsDaos: true,
  entity: 'dao',
  nameOmitted: ({ unread }) => nameUnread(unread),
  isCollected: true,
  hasHistory: true,
  series: { table: 'dao_treasuries', entity: 'dao', time: 'observed_at', provider: 'source' },
})

/** SQL condition that the total of a row is the whole treasury. */
export const IS_WHOLE = 'empty(unread)'

/** The number of assets in a text. */
const MOST_NAMES = 5

/** The names of the assets that cannot be read, for the reason in the coverage. */
function nameUnread(unread: readonly UnreadHolding[]): string {
  const names = unread.map(({ chain, contract, symbol }) => {
    const asset = contract === null ? chain : `${chain}/${contract}`
    return symbol === '' ? `an unnamed asset of ${asset}` : `${symbol} of ${asset}`
  })
  const all = [...new Set(names)]
  const more = all.length > MOST_NAMES ? `, ${all.length - MOST_NAMES} more` : ''
  return all.slice(0, MOST_NAMES).join(', ') + more
}

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

/** Set if holdings could not be read, so that a value is that of a part of the treasury. */
export const isPartialMember = z
  .boolean()
  .nullable()
  .optional()
  .describe(
    'True if holdings could not be read: `valueUsd` is the value of the others, and `/data/status/coverage` names the assets. Absent or null on other days.',
  )

/**
 * SQL for the value of the holdings of one kind: null if a row has no holdings, or no price for any of the kind; 0 if
 * there are none of the kind.
 */
const worthOf = (kind: HoldingKind) => {
  const values = `arrayMap(one -> one.value_usd, arrayFilter(one -> one.kind = '${kind}', holdings))`
  const sum = `arraySum(arrayMap(value -> ifNull(value, 0), ${values}))`
  return `if(empty(holdings) OR (notEmpty(${values}) AND arrayAll(value -> isNull(value), ${values})), NULL, ${sum})`
}

/** SQL for the value of each kind of holdings, from a stored row. */
export const KIND_VALUES = {
  own_token_usd: worthOf('own'),
  stablecoin_usd: worthOf('stable'),
  other_usd: worthOf('other'),
} as const

/** The member with the value of a kind of holdings. */
export const kindValue = (of: string) =>
  usdOrNull.describe(`Value of ${of} in US dollars; null if holdings were not stored, or none of these has a price.`)

/** The value of treasuries by day. */
export const treasurySeries = defineSeries(daoTreasury, {
  about: 'dao',
  record: z
    .strictObject({
      recordedAt: timeValue.describe('The first moment of the day, in UTC.'),
      valueUsd: usd.describe('Value of everything that had a price, in US dollars.'),
      ownTokenUsd: kindValue("the DAO's own tokens"),
      stablecoinUsd: kindValue("stablecoins, by this service's list of them,"),
      otherUsd: kindValue('everything else'),
      assets: uint32.describe('How many assets were held, with a price or without.'),
      isPartial: isPartialMember,
    })
    .meta({ id: 'TreasuryPoint', description: 'The treasury of a DAO on one day.' }),
  values: {
    value_usd: 'value_usd',
    ...KIND_VALUES,
    assets: 'length(tokens)',
    is_partial: `if(${IS_WHOLE}, NULL, true)`,
  },
})
