import { z } from 'zod'
import type { TokenHoldersRow } from '../../../shared/datasets/holders.ts'
import { tokenPrice } from '../../../shared/datasets/token-prices.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Candidate } from '../../job/define-job.ts'
import { asSent, listOf, orNull, toNumber } from '../answer.ts'
import { toLowerCase, toHoldersRow as toRow } from '../holder-values.ts'
import { toTokenUnits } from '../token-units.ts'

/**
 * getTopTokenHolders: balances in base units, as a float and, recently, also as an exact text (docs/providers.md,
 * section 5).
 */
export const topHoldersAnswer = z.object({
  holders: listOf(z.object({ address: asSent, balance: asSent, rawBalance: asSent, share: asSent })),
})

/** getTokenInfo: `price` is false if the provider has none (docs/providers.md, section 5). */
export const tokenInfoAnswer = z.object({
  holdersCount: asSent,
  price: asSent,
})

/**
 * Builds the snapshot of the largest holders from at least one holder, largest first. The decimals are the registry's:
 * the provider reports 0 decimals for contracts that it could not read.
 */
export function toHoldersRow(
  list: z.infer<typeof topHoldersAnswer>,
  info: z.infer<typeof tokenInfoAnswer>,
  token: Token,
  slot: number,
): Candidate<TokenHoldersRow> {
  const price = toUsdPrice(info.price)
  const holders = list.holders.map((holder) => {
    const amount = toTokenUnits(holder.rawBalance ?? holder.balance, token.decimals)
    return {
      address: toLowerCase(holder.address),
      amount,
      amount_usd: amount === null || price === null ? null : amount * price,
      share: toNumber(holder.share),
    }
  })
  return toRow(holders, info.holdersCount, token, slot)
}

const usdPrice = z.object({ rate: asSent, currency: z.literal('USD').optional() })

function toUsdPrice(price: unknown): number | null {
  return orNull(tokenPrice, toNumber(orNull(usdPrice, price)?.rate))
}
