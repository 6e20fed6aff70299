import { z } from 'zod'
import { tokenHolders } from '../../../shared/datasets/holders.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { idValue, numberOrNull, uint64 } from '../../formats/formats.ts'
import { defineList, lastCurrentRows, listedTokens } from '../../lists/lists.ts'

const holder = z
  .strictObject({
    address: z.string().describe('Address of the holder.'),
    amount: z.number().describe('Tokens that it holds.'),
    amountUsd: numberOrNull.describe('Their value at that time in US dollars; null if the source has no price.'),
    share: z.number().describe('Percent of the total supply.'),
  })
  .meta({ id: 'Holder', description: 'An address that holds a token.' })

const holdersRecord = z
  .strictObject({
    _id: idValue.describe('Id of the token.'),
    name: z.string().describe('Name of the token.'),
    holdersData: z
      .strictObject({
        totalHolders: uint64.describe('Addresses that hold the token.'),
        top100Share: z.number().describe('Percent of the total supply that the hundred largest hold together.'),
        topHolders: z.array(holder).describe('The largest holders, largest first.'),
      })
      .describe('Holders of the token, as last observed.'),
  })
  .meta({ id: 'TokenHolders', description: 'The largest holders of a token.' })

/** A token's holders (docs/contract.md, section 4). */
export type HoldersRecord = z.infer<typeof holdersRecord>

export const holdersRoute = defineList({
  operation: 'listTokenHolders',
  path: '/data/tokens/holders',
  summary: 'The largest holders of tokens',
  description:
    'For all live tokens with holder data, or those that `id` and `name` select: how many hold the token, the share of the hundred largest in percent of the total supply, and those, largest first. `amountUsd` is the value at the time of the snapshot, null if the source has no price. Exact name matches come first, then by market cap, largest first, then by name.',
  of: listedTokens,
  record: holdersRecord,
  datasets: [tokenHolders, tokenPrices],
  name: 'token-holders',
  asOf: 'h.observed_at',
  // Tuples are rebuilt before the cast: a cast between named tuples maps by name, and would lose the renamed member.
  values: `t.id, t.name, tuple(h.total_holders, h.top100_share,
    arrayMap(holder -> tuple(holder.1, holder.2, holder.3, holder.4), h.holders))`,
  joins: 'INNER JOIN (SELECT * FROM token_holders_latest FINAL) AS h ON h.token = t.key',
  pastJoins: `INNER JOIN ${lastCurrentRows(tokenHolders)} AS h ON h.token = t.key`,
})
