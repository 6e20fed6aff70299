import { z } from 'zod'
import { MOST_HELD_USD, MOST_PEOPLE, MOST_TOKENS } from './bounds.ts'
import { defineDataset } from './define-dataset.ts'

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
  cadence: '1h',
  table: 'token_holders',
  row: tokenHoldersRow,
  entities: ({ tokens, chainBySlug }) => tokens.filter(({ live, chain }) => live && chainBySlug.get(chain)?.evm),
  entity: 'token',
  isCollected: true,
  rowStep: 'rotation',
  series: { table: 'token_holders', entity: 'token', time: 'observed_at' },
})

function isDescending(holders: readonly Holder[]): boolean {
  return holders.every(({ amount }, index) => amount <= (holders[index - 1]?.amount ?? amount))
}

function isDistinct(holders: readonly Holder[]): boolean {
  return new Set(holders.map(({ address }) => address)).size === holders.length
}
