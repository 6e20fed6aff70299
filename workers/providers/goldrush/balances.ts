import { z } from 'zod'
import { asSent, toNumber } from '../answer.ts'
import type { Wallet } from '../contracts/treasury-daos.ts'
import { toLowerCase } from '../holder-values.ts'
import type { Holding } from '../treasury-holdings.ts'
import { toWholeTokens } from '../whole-tokens.ts'

/** What every answer about an address says of a token. */
export const heldToken = z.object({
  contract_address: z.string(),
  contract_decimals: asSent,
  contract_ticker_symbol: z.string().nullish(),
  contract_name: z.string().nullish(),
})

/** Balances_v2: everything that an address holds (providers document, section 11). */
export const balancesData = z.object({
  items: z.array(
    heldToken.extend({ type: asSent, is_spam: asSent, balance: asSent, quote: asSent, quote_rate: asSent }),
  ),
})

/** A holding of one address, and what is needed to read its past. */
export interface Position extends Holding {
  readonly contract: string
  readonly decimals: number
}

/** Collectibles have no price per unit, and dust was sent to the address unasked. */
const LEFT_OUT: ReadonlySet<unknown> = new Set(['nft', 'dust'])

/**
 * The fungible tokens of an address. Spam, collectibles and dust are left out, and so is what has no decimals, because
 * it is not fungible.
 */
export function toPositions({ items }: z.infer<typeof balancesData>, { chain, address }: Wallet): Position[] {
  return items.flatMap((item) => {
    const decimals = toNumber(item.contract_decimals)
    if (item.is_spam === true || LEFT_OUT.has(item.type) || typeof decimals !== 'number') return []
    return [
      {
        chain,
        address,
        contract: String(toLowerCase(item.contract_address)),
        symbol: item.contract_ticker_symbol || item.contract_name || item.contract_address,
        decimals,
        quantity: toWholeTokens(item.balance, decimals),
        ...toQuoted(item.quote, item.quote_rate),
      },
    ]
  })
}

/** How many tokens of an address are left out as spam. */
export const countSpam = ({ items }: z.infer<typeof balancesData>): number =>
  items.filter((item) => item.is_spam === true || item.type === 'dust').length

/**
 * A value in USD and whose it is, null where there is none. A quote of 0 is a value only beside a price: the provider also
 * sends it of a token that it has no price for.
 */
export function toQuoted(quote: unknown, rate: unknown): Pick<Holding, 'valueUsd' | 'priceSource'> {
  const value = toNumber(quote)
  return typeof value === 'number' && (value > 0 || Number(toNumber(rate)) > 0)
    ? { valueUsd: value, priceSource: 'goldrush' }
    : { valueUsd: null, priceSource: null }
}
