import { z } from 'zod'
import { MOST_HELD_USD, MOST_PRICE_USD } from '../../../shared/datasets/bounds.ts'
import { tokenPrice } from '../../../shared/datasets/token-prices.ts'
import { heldValue, MOST_ADDRESS } from '../../../shared/datasets/treasury.ts'
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

type Item = z.infer<typeof balancesData>['items'][number]

/** A holding of one address, with the facts needed to read its past. */
export interface Position extends Holding {
  /** Null if the item has no readable contract, or if the decimals cannot be read. */
  readonly decimals: number | null
}

const places = z.int().min(0).max(77)
const contractAddress = z.string().min(1).max(MOST_ADDRESS).toLowerCase()

/** Returns the decimals of a token contract; null if there are none that can be. */
export const toDecimals = (value: unknown): number | null => orNull(places, toNumber(value))
/** Returns a contract in lower case; null if it cannot be one. */
export const toContract = (value: unknown): string | null => orNull(contractAddress, value)

/**
 * Returns the fungible tokens of an address. Spam and collectibles are left out, and so are tokens without decimals and
 * price, because they are not fungible. Tokens without a quote, which the provider calls dust, are included: another
 * source may have their price. An item that cannot be read is a position without a quantity.
 */
export function toPositions({ items }: z.infer<typeof balancesData>, { chain, address }: Wallet): Position[] {
  const seen = new Set<string>()
  return items.flatMap((item) => {
    if (item.is_spam === true || item.type === 'nft') return []
    const contract = toContract(item.contract_address)
    if (contract === null) return [toUnusable({ chain, address }, { fault: 'items.*: expected a contract' })]
    const asset = { chain, address, contract, symbol: toSymbol(item) }
    const decimals = toDecimals(item.contract_decimals)
    if (decimals === null) return [toUnusable(asset, findDecimalsFault(item))]
    if (seen.has(contract)) return [toUnusable(asset, { fault: 'items.*.contract_address: is listed twice' })]
    seen.add(contract)
    const quantity = toTokenUnits(item.balance, decimals)
    return [{ ...asset, decimals, quantity, ...toQuoted(item.quote, item.quote_rate) }]
  })
}

type Fault = Pick<Holding, 'fault' | 'isOdd'>

/** An unusable part of a response, which is unread, because it has no quantity. */
const toUnusable = (asset: Pick<Holding, 'chain' | 'address'> & Partial<Holding>, fault: Fault): Position => ({
  ...{ contract: null, symbol: '', ...asset, ...fault },
  ...{ decimals: null, quantity: null, valueUsd: null, priceSource: null },
})

/** Any contract can be without decimals, or have impossible ones. If it has a price, they are the provider's mistake. */
function findDecimalsFault({ contract_decimals, quote, quote_rate }: Item): Fault {
  if ((contract_decimals ?? null) !== null)
    return { fault: 'items.*.contract_decimals: no number that can be', isOdd: true }
  return toQuoted(quote, quote_rate).valueUsd === null
    ? { isOdd: true }
    : { fault: 'items.*.contract_decimals: expected a number' }
}

/** Returns a token's symbol, or else its name or its contract. */
export function toSymbol(item: z.infer<typeof heldToken>): string {
  const names = [item.contract_ticker_symbol, item.contract_name, item.contract_address]
  return names.find((name): name is string => typeof name === 'string' && name !== '') ?? ''
}

/** Counts the tokens of an address that are left out as spam. */
export const countSpam = ({ items }: z.infer<typeof balancesData>): number =>
  items.filter((item) => item.is_spam === true).length

/** Returns the contracts of these tokens. */
export const toSpam = ({ items }: z.infer<typeof balancesData>, { chain }: Wallet) =>
  items.flatMap((item) => {
    const contract = item.is_spam === true ? toContract(item.contract_address) : null
    return contract === null ? [] : [{ chain, contract }]
  })

/**
 * Returns a value in USD and its source, null if it is missing or invalid. A quote of 0 is valid only with a price: the
 * provider also sends 0 for tokens without a price.
 */
export function toQuoted(quote: unknown, rate: unknown): Pick<Holding, 'valueUsd' | 'priceSource' | 'fault' | 'isOdd'> {
  const [rawValue, price] = [toNumber(quote), toNumber(rate)]
  const value = orNull(heldValue, rawValue)
  const isPriceBad = price !== null && price !== 0 && orNull(tokenPrice, price) === null
  if ((rawValue !== null && value === null) || isPriceBad) {
    // Any token can be traded at an absurd price.
    const isOdd = Number(rawValue) > MOST_HELD_USD || Number(price) > MOST_PRICE_USD
    const fault = 'quote: no value that can be'
    return { valueUsd: null, priceSource: null, fault, ...(isOdd ? { isOdd } : {}) }
  }
  return value !== null && (value > 0 || Number(price) > 0)
    ? { valueUsd: value, priceSource: 'goldrush' }
    : { valueUsd: null, priceSource: null }
}
