import { z } from 'zod'
import type { TokenHoldersRow } from '../../../shared/datasets/holders.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Candidate } from '../../job/define-job.ts'
import { asSent, listOf, toNumber } from '../answer.ts'
import { toLowerCase, toHoldersRow as toRow } from '../holder-values.ts'
import { toTokenUnits } from '../token-units.ts'

/** erc20/{address}/holders (docs/providers.md, section 4.1). */
export const holdersAnswer = z.object({ totalHolders: asSent })

/** erc20/{address}/owners: a page, with a cursor if another page follows (docs/providers.md, section 4.2). */
export const ownersAnswer = z.object({
  cursor: z.string().nullish(),
  result: listOf(
    z.object({
      owner_address: asSent,
      balance: asSent,
      balance_formatted: asSent,
      usd_value: asSent,
      percentage_relative_to_total_supply: asSent,
    }),
  ),
})

type Owner = z.infer<typeof ownersAnswer>['result'][number]

/**
 * Builds the snapshot of the largest owners from at least one owner, largest first. The provider's sum of the first
 * hundred is not used: its unit is not documented, and the served share must be the sum of the listed shares.
 */
export function toHoldersRow(
  { totalHolders }: z.infer<typeof holdersAnswer>,
  owners: readonly Owner[],
  token: Token,
  slot: number,
): Candidate<TokenHoldersRow> {
  const holders = owners.map((owner) => ({
    address: toLowerCase(owner.owner_address),
    amount: toNumber(owner.balance_formatted) ?? toTokenUnits(owner.balance, token.decimals),
    amount_usd: toNumber(owner.usd_value),
    share: toNumber(owner.percentage_relative_to_total_supply),
  }))
  return toRow(holders, totalHolders, token, slot)
}
