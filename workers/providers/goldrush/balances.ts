import { z } from 'zod'
import { tokenPrice } from '../../../shared/datasets/token-prices.ts'
import { heldValue } from '../../../shared/datasets/treasury.ts'
import { asSent, listOf, orNull, toNumber } from '../answer.ts'
import type { Wallet } from '../contracts/treasury-daos.ts'
import type { Holding } from '../treasury-holdings.ts'
import { toWholeTokens } from '../whole-tokens.ts'

/** What every answer about an address says of a token. */
export const heldToken = z.object({
  contract_address: asSent,
  contract_decimals: asSent,
  contract_ticker_symbol: asSent,
  contract_name: asSent,
})

/** Balances_v2: everything that an address holds (docs/providers.md, section 11). */
export const balancesData = z.object({
  items: listOf(
    heldToken.extend({ type: asSent, is_spam: asSent, balance: asSent, quote: asSent, quote_rate: asSent }),
  ),
})

/** A holding of one address, and what is needed to read its past. */
export interface Position extends Holding {
  readonly contract: string
  readonly decimals: number
}

/** What a contract may say of itself: its balances are integers with so many decimal places. */
const places = z.int().min(0).max(77)

/**
 * The fungible tokens of an address. Spam and collectibles are left out, and so is what has no decimals, because it is not
 * fungible. The provider calls a token without a quote dust: it is held like any other, and its price may be known elsewhere.
 */
export function toPositions({ items }: z.infer<typeof balancesData>, { chain, address }: Wallet): Position[] {
  const known = new Set<unknown>()
  return items.flatMap((item) => {
    const { contract_decimals, contract_address } = item
    if (item.is_spam === true || item.type === 'nft') return []
    if (typeof contract_address !== 'string') return [toUnusable({ chain, address }, 'items.*: expected a contract')]
    if ((contract_decimals ?? null) === null) return []
    const decimals = orNull(places, toNumber(contract_decimals))
    if (decimals === null) return [toUnusable({ chain, address }, 'items.*.contract_decimals: no number that can be')]
    if (known.has(contract_address))
      return [toUnusable({ chain, address }, 'items.*.contract_address: is listed twice')]
    known.add(contract_address)
    return [
      {
        chain,
        address,
        contract: contract_address.toLowerCase(),
        symbol: toSymbol(item),
        decimals,
        quantity: toWholeTokens(item.balance, decimals),
        ...toQuoted(item.quote, item.quote_rate),
      },
    ]
  })
}

/** A part of the answer of which nothing can be told but that it is there; without a quantity it is left out and counted. */
const toUnusable = (at: Pick<Wallet, 'chain' | 'address'>, fault: string): Position => ({
  ...{ chain: at.chain, address: at.address, contract: '', symbol: '', decimals: 0, quantity: null },
  ...{ valueUsd: null, priceSource: null, fault },
})

/** How a token is called: by its symbol, else by its name or its contract. */
export function toSymbol(item: z.infer<typeof heldToken>): string {
  const names = [item.contract_ticker_symbol, item.contract_name, item.contract_address]
  return names.find((name): name is string => typeof name === 'string' && name !== '') ?? ''
}

/** How many tokens of an address are left out as spam. */
export const countSpam = ({ items }: z.infer<typeof balancesData>): number =>
  items.filter((item) => item.is_spam === true).length

/**
 * A value in USD and whose it is, null where there is none or it cannot be. A quote of 0 is a value only beside a price: the
 * provider also sends it of a token that it has no price for.
 */
export function toQuoted(quote: unknown, rate: unknown): Pick<Holding, 'valueUsd' | 'priceSource' | 'fault'> {
  const [told, price] = [toNumber(quote), toNumber(rate)]
  const value = orNull(heldValue, told)
  const isPriceBad = price !== null && price !== 0 && orNull(tokenPrice, price) === null
  if ((told !== null && value === null) || isPriceBad)
    return { valueUsd: null, priceSource: null, fault: 'quote: no value that can be' }
  return value !== null && (value > 0 || Number(price) > 0)
    ? { valueUsd: value, priceSource: 'goldrush' }
    : { valueUsd: null, priceSource: null }
}
