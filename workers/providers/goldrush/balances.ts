import { z } from 'zod'
import { tokenPrice } from '../../../shared/datasets/token-prices.ts'
import { heldValue } from '../../../shared/datasets/treasury.ts'
import { asSent, listOf, orNull, toNumber } from '../answer.ts'
import type { Wallet } from '../contracts/treasury-daos.ts'
import { toTokenUnits } from '../token-units.ts'
import type { Holding } from '../treasury-holdings.ts'

/** Members of a token in every response about an address. */
export const heldToken = z.object({
  contract_address: asSent,
  contract_decimals: asSent,
  contract_ticker_symbol: asSent,
  contract_name: asSent,
})

/** balances_v2: all holdings of an address (docs/providers.md, section 11). */
export const balancesData = z.object({
  items: listOf(
    heldToken.extend({ type: asSent, is_spam: asSent, balance: asSent, quote: asSent, quote_rate: asSent }),
  ),
})

/** A holding of one address, with the facts needed to read its past. */
export interface Position extends Holding {
  readonly contract: string
  readonly decimals: number
}

/** Plausible decimals of a token contract. */
const places = z.int().min(0).max(77)

/**
 * Returns the fungible tokens of an address. Spam and collectibles are left out, and so are tokens without decimals,
 * because they are not fungible. Tokens without a quote, which the provider calls dust, are included: another source
 * may have their price.
 */
export function toPositions({ items }: z.infer<typeof balancesData>, { chain, address }: Wallet): Position[] {
  const seen = new Set<unknown>()
  return items.flatMap((item) => {
    const { contract_decimals, contract_address } = item
    if (item.is_spam === true || item.type === 'nft') return []
    if (typeof contract_address !== 'string') return [toUnusable({ chain, address }, 'items.*: expected a contract')]
    if ((contract_decimals ?? null) === null) return []
    const decimals = orNull(places, toNumber(contract_decimals))
    if (decimals === null) return [toUnusable({ chain, address }, 'items.*.contract_decimals: no number that can be')]
    if (seen.has(contract_address)) return [toUnusable({ chain, address }, 'items.*.contract_address: is listed twice')]
    seen.add(contract_address)
    return [
      {
        chain,
        address,
        contract: contract_address.toLowerCase(),
        symbol: toSymbol(item),
        decimals,
        quantity: toTokenUnits(item.balance, decimals),
        ...toQuoted(item.quote, item.quote_rate),
      },
    ]
  })
}

/** Placeholder for an unusable part of a response. It has no quantity, so it is left out and counted. */
const toUnusable = (at: Pick<Wallet, 'chain' | 'address'>, fault: string): Position => ({
  ...{ chain: at.chain, address: at.address, contract: '', symbol: '', decimals: 0, quantity: null },
  ...{ valueUsd: null, priceSource: null, fault },
})

/** Returns a token's symbol, or else its name or its contract. */
export function toSymbol(item: z.infer<typeof heldToken>): string {
  const names = [item.contract_ticker_symbol, item.contract_name, item.contract_address]
  return names.find((name): name is string => typeof name === 'string' && name !== '') ?? ''
}

/** Counts the tokens of an address that are left out as spam. */
export const countSpam = ({ items }: z.infer<typeof balancesData>): number =>
  items.filter((item) => item.is_spam === true).length

/**
 * Returns a value in USD and its source, null if it is missing or invalid. A quote of 0 is valid only with a price: the
 * provider also sends 0 for tokens without a price.
 */
export function toQuoted(quote: unknown, rate: unknown): Pick<Holding, 'valueUsd' | 'priceSource' | 'fault'> {
  const [rawValue, price] = [toNumber(quote), toNumber(rate)]
  const value = orNull(heldValue, rawValue)
  const isPriceBad = price !== null && price !== 0 && orNull(tokenPrice, price) === null
  if ((rawValue !== null && value === null) || isPriceBad)
    return { valueUsd: null, priceSource: null, fault: 'quote: no value that can be' }
  return value !== null && (value > 0 || Number(price) > 0)
    ? { valueUsd: value, priceSource: 'goldrush' }
    : { valueUsd: null, priceSource: null }
}
