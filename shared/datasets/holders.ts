import { z } from 'zod'
import { percent, percentOrNull, timeValue, uint64 } from '../record-values.ts'
import { MOST_HELD_USD, MOST_PEOPLE, MOST_TOKENS } from './bounds.ts'
import { defineDataset, STORED_PROVIDER } from './define-dataset.ts'
import { defineSeries } from './define-series.ts'

/** The number of holders in a snapshot. */
export const TOP_HOLDERS = 100

/** The maximum rounding error of a hundred shares, each rounded to two decimals. */
const ROUNDING = 0.5

export const tokenHolder = z.strictObject({
  address: z.string().regex(/^0x[0-9a-f]{40}$/, 'must be an address in lower case'),
  amount: z.number().nonnegative().max(MOST_TOKENS),
  amount_usd: z.number().nonnegative().max(MOST_HELD_USD).nullable(),
  share: z
    .number()
    .min(0)
    .max(100 + ROUNDING),
})

type Holder = z.infer<typeof tokenHolder>

/**
 * The largest holders of a token as of a slot, largest first. `amount` is in whole tokens, `amount_usd` the source's
 * valuation (null without one), shares are percent of the total supply. `top100_share` is the sum of the shares. Empty
 * lists are rejected: failing sources return them (docs/providers.md, section 5).
 */
export const tokenHoldersRow = z
  .strictObject({
    token: z.number().int().nonnegative(),
    observed_at: z.iso.datetime(),
    total_holders: z.number().int().nonnegative().max(MOST_PEOPLE),
    top100_share: z
      .number()
      .min(0)
      .max(100 + ROUNDING),
    holders: z
      .array(tokenHolder)
      .min(1)
      .max(TOP_HOLDERS)
      .refine(isDescending, 'not in descending order of amount')
      .refine(isDistinct, 'an address twice'),
  })
  .refine(({ total_holders, holders }) => total_holders >= holders.length, {
    path: ['total_holders'],
    error: 'fewer than are listed',
  })

export type TokenHoldersRow = z.infer<typeof tokenHoldersRow>

/** Token holders: a row per token and snapshot. All snapshots are stored; the API serves the newest. */
export const tokenHolders = defineDataset({
  name: 'holders',
  title: 'Token holders',
  cadence: '1h',
  table: 'token_holders',
  row: tokenHoldersRow,
  entities: ({ tokens, chainBySlug }) => tokens.filter(({ live, chain }) => live && chainBySlug.get(chain)?.evm),
  entity: 'token',
  isCollected: true,
  isAttributed: true,
  rowStep: 'rotation',
  series: { table: 'token_holders', entity: 'token', time: 'observed_at', provider: STORED_PROVIDER },
})

function isDescending(holders: readonly Holder[]): boolean {
  return holders.every(({ amount }, index) => amount <= (holders[index - 1]?.amount ?? amount))
}

function isDistinct(holders: readonly Holder[]): boolean {
  return new Set(holders.map(({ address }) => address)).size === holders.length
}

/** Number of holders, and shares of the largest ones, by day. */
export const holdersSeries = defineSeries(tokenHolders, {
  about: 'token',
  isDaysOnly: true,
  record: z
    .strictObject({
      recordedAt: timeValue.describe('The first moment of the day, in UTC.'),
      totalHolders: uint64.describe('Addresses that held the token.'),
      top10Share: percent.describe('Percent of the total supply that the ten largest held together.'),
      top100Share: percent.describe('Percent of the total supply that the hundred largest held together.'),
    })
    .meta({ id: 'HoldersPoint', description: 'Holders of a token on one day.' }),
  values: {
    total_holders: 'total_holders',
    // Rounded like the stored share of the hundred largest, so that no rounding error is visible.
    top10_share: 'round(arraySum(arraySlice(holders.share, 1, 10)), 10)',
    top100_share: 'top100_share',
  },
})

/** Burn addresses without a known private key: tokens sent there are lost. */
const BURNED = `['0x0000000000000000000000000000000000000000', '0x000000000000000000000000000000000000dead']`

const shareOf = (owners: string) =>
  `round(arraySum(arrayMap((share, address) -> if(has(${owners}, address), share, 0), s.shares, s.addresses)), 10)`

/** Shares of the token's contract, of burn addresses and of the treasuries of its DAO in the registry, by day. */
export const holderLabelsSeries = defineSeries(tokenHolders, {
  about: 'token',
  isDaysOnly: true,
  record: z
    .strictObject({
      recordedAt: timeValue.describe('The first moment of the day, in UTC.'),
      treasuryShare: percentOrNull.describe(
        "Percent of the total supply that the treasuries of the token's DAO held, of the hundred largest; null if no address of them is known.",
      ),
      contractShare: percent.describe(
        "Percent of the total supply held by the token's own contract, if it is among the hundred largest holders.",
      ),
      burnShare: percent.describe(
        'Percent of the total supply that was sent to the addresses 0x0…0 and 0x0…dead, of the hundred largest.',
      ),
    })
    .meta({ id: 'HolderLabelsPoint', description: 'How much of a token known addresses held on one day.' }),
  values: {
    treasury_share: `if(empty(d.treasury_addresses), NULL, ${shareOf('d.treasury_addresses')})`,
    contract_share: shareOf('[t.contract_address]'),
    burn_share: shareOf(BURNED),
  },
  joined: {
    columns: { shares: 'holders.share', addresses: 'holders.address' },
    joins: (
      isOwner,
    ) => `LEFT JOIN (SELECT key, dao_key, contract_address FROM tokens FINAL WHERE key ${isOwner}) AS t ON t.key = s.owner
LEFT JOIN (SELECT key, treasury_addresses FROM daos FINAL) AS d ON d.key = t.dao_key`,
  },
})
