import { MOST_HELD_USD, MOST_TOKENS } from '../../shared/datasets/bounds.ts'
import {
  type DaoTreasuryRow,
  type HoldingRow,
  heldQuantity,
  heldValue,
  MOST_SPAM_CONTRACTS,
  MOST_SYMBOL,
  NATIVE_COIN,
  sumValues,
  type UnreadHolding,
} from '../../shared/datasets/treasury.ts'
import { type Candidate, OMITTED } from '../job/define-job.ts'
import { orNull, toIso } from './answer.ts'
import type { TreasuryDao } from './contracts/treasury-daos.ts'

/** Quantity of one contract held by an address, in whole tokens and in USD; null is unknown. */
export interface Holding {
  /** Slug of the chain, or the source's series name if it has no chain. */
  readonly chain: string
  /** Null if the source reports all addresses together. */
  readonly address: string | null
  /** Null if the source names tokens only by symbol: each symbol is then one token of its chain. */
  readonly contract: string | null
  /** A label: anyone can choose it. Empty if the part of the response has none. */
  readonly symbol: string
  /** Null if the source's quantity cannot be read. */
  readonly quantity: number | null
  readonly valueUsd: number | null
  /** Source of the price; null without one. */
  readonly priceSource: string | null
  /** Set if the source marks the token as the DAO's own. */
  readonly isOwn?: true
  /** Why a member is invalid, such as the value, which then counts as unknown. */
  readonly fault?: string
  /**
   * Set if the contract itself can cause the invalid member, such as impossible decimals. Anyone can send such a token,
   * so only an asset of the registry then counts as unread.
   */
  readonly isOdd?: true
}

/** A treasury as reported by a source. */
export interface Held {
  readonly holdings: readonly Holding[]
  /** Number of tokens left out as spam; null if the source does not report it. */
  readonly spamCount: number | null
  /** The contracts of these tokens. */
  readonly spam?: readonly { readonly chain: string; readonly contract: string }[]
  /** Other unusable parts of the response. */
  readonly faults?: readonly string[]
}

/** Holdings of one token and their total. */
export interface Sum {
  readonly parts: readonly Holding[]
  readonly total: Holding
}

/** Largest price difference of one token between two chains, limited by the cost of moving it. */
const SAME_PRICE = 0.01

type KindOf = TreasuryDao['kindOf']

/**
 * Merges holdings of the same token. On one chain, that is the same contract. Across chains, it is the same symbol of
 * the same kind with prices within 1 %, but only for contracts that are known to be that asset: own tokens and
 * stablecoins of the registry, native coins, and assets of sources that list selected tokens without contracts. Anyone
 * can choose the symbol and the price of any other contract. Sorted by value, largest first, holdings without a value
 * last.
 */
export function mergeHoldings(holdings: readonly Holding[], kindOf: KindOf): Sum[] {
  const groups: { members: Sum[]; chains: Set<string> }[] = []
  const byName = new Map<string, typeof groups>()
  for (const sum of byTotal(sumContracts(holdings))) {
    const { chain } = sum.total
    const name = toCommonName(sum.total, kindOf)
    const candidates = name === null ? [] : (byName.get(name) ?? [])
    const group = candidates.find(({ members, chains }) => !chains.has(chain) && hasSamePrice(members[0], sum))
    if (group === undefined) {
      const added = { members: [sum], chains: new Set([chain]) }
      groups.push(added)
      if (name !== null) byName.set(name, [...candidates, added])
    } else {
      group.members.push(sum)
      group.chains.add(chain)
    }
  }
  const sums = groups.flatMap(({ members: [first, ...rest] }) => (first ? [rest.reduce(join, first)] : []))
  return byTotal(sums)
}

/** The name that an asset has on all chains; null if only its contract identifies it. */
function toCommonName(holding: Holding, kindOf: KindOf): string | null {
  const { contract, symbol } = holding
  const kind = kindOf(holding)
  return contract === null || contract === NATIVE_COIN || kind !== 'other' ? `${kind} ${symbol.toUpperCase()}` : null
}

/**
 * Builds the row of all holdings. Undefined if nothing has a price, because the treasury's value is then unknown.
 * Holdings with a quantity of 0 are left out. A holding with an unknown or invalid quantity or value is `unread`: it
 * was not sold, and the total is a part of the treasury.
 */
export function toTreasuryRow(
  { key, kindOf }: Pick<TreasuryDao, 'key' | 'kindOf'>,
  at: number,
  source: string,
  { holdings, spamCount, spam = [], faults: heldFaults = [] }: Held,
): Candidate<DaoTreasuryRow> | undefined {
  const labelled = holdings.map((holding) => ({ ...holding, symbol: toLabel(holding.symbol) }))
  const counted = labelled.filter(({ quantity }) => orNull(heldQuantity, quantity) !== null).map(toPlausible)
  const lost = labelled.filter(({ quantity }) => orNull(heldQuantity, quantity) === null).map(toLost)
  const kept = counted.filter(({ quantity }) => quantity !== 0)
  const unvalued = kept.filter(({ valueUsd, fault }) => valueUsd === null && fault !== undefined)
  const faults = [...heldFaults, ...[...lost, ...counted].flatMap(({ fault }) => fault ?? [])]
  const sums = mergeHoldings(kept, kindOf)
  const tokens = sums.map(({ total: { symbol, quantity, valueUsd } }) => ({ symbol, quantity, value_usd: valueUsd }))
  if (tokens.every(({ value_usd }) => value_usd === null)) return undefined
  return {
    ...{ dao: key, observed_at: toIso(at), value_usd: sumValues(tokens), tokens },
    ...{ holdings: toHoldingRows(sums, kindOf), spam_count: spamCount, spam: spam.slice(0, MOST_SPAM_CONTRACTS) },
    ...{ unread: toUnread([...lost, ...unvalued], kindOf), source },
    ...(faults.length === 0 ? {} : { [OMITTED]: faults }),
  }
}

/** Cuts a symbol to the stored length, without half of a surrogate pair at its end. */
const toLabel = (symbol: string): string =>
  symbol.length <= MOST_SYMBOL ? symbol : symbol.slice(0, MOST_SYMBOL).replace(/[\uD800-\uDBFF]$/, '')

/** A holding whose quantity is invalid. A contract can report any amount, but no source sends a negative one. */
function toLost(holding: Holding): Holding {
  const isOdd = holding.isOdd ?? (holding.quantity ?? 0) > MOST_TOKENS
  const fault = holding.fault ?? (holding.isOdd ? undefined : 'holdings.*.quantity: no amount that can be')
  return { ...holding, ...(isOdd ? { isOdd } : {}), ...(fault === undefined ? {} : { fault }) }
}

/** Returns each unread holding once. */
function toUnread(holdings: readonly Holding[], kindOf: KindOf): UnreadHolding[] {
  const isListed = (one: Holding) => one.contract === NATIVE_COIN || kindOf(one) !== 'other'
  const unread = holdings.filter((one) => one.isOdd !== true || isListed(one))
  const rows = unread.map(({ chain, address, contract, symbol }) => ({ chain, address, contract, symbol }))
  return [...new Map(rows.map((row) => [JSON.stringify(row), row])).values()]
}

/** An invalid value becomes unknown. */
function toPlausible(holding: Holding): Holding {
  if (holding.valueUsd === null || orNull(heldValue, holding.valueUsd) !== null) return holding
  const unknown = { valueUsd: null, priceSource: null, fault: 'holdings.*.value_usd: no value that can be' }
  return { ...holding, ...unknown, ...(holding.valueUsd > MOST_HELD_USD ? { isOdd: true } : {}) }
}

/**
 * Returns the parts of the sums, largest value first. If a total is unknown because of one part, the values of all its
 * parts become unknown, so that parts and totals agree.
 */
function toHoldingRows(sums: readonly Sum[], kindOf: KindOf): Candidate<HoldingRow>[] {
  const complete = sums.flatMap(({ parts, total }) =>
    parts.map((part) => ({
      ...part,
      ...(total.valueUsd === null ? { valueUsd: null, priceSource: null } : {}),
      kind: kindOf(part),
    })),
  )
  return order(complete).map(({ chain, address, contract, symbol, quantity, valueUsd, priceSource, kind }) => {
    return { chain, address, contract, symbol, quantity, value_usd: valueUsd, price_source: priceSource, kind }
  })
}

function sumContracts(holdings: readonly Holding[]): Sum[] {
  const sums = new Map<string, Sum>()
  for (const holding of holdings) {
    const key = JSON.stringify([holding.chain, holding.contract, holding.contract === null ? holding.symbol : ''])
    const [before, one] = [sums.get(key), { parts: [holding], total: holding }]
    sums.set(key, before === undefined ? one : join(before, one))
  }
  return [...sums.values()]
}

function join(a: Sum, b: Sum): Sum {
  const total = {
    ...a.total,
    quantity: add(a.total.quantity, b.total.quantity),
    valueUsd: add(a.total.valueUsd, b.total.valueUsd),
  }
  return { parts: [...a.parts, ...b.parts], total }
}

/** The sum is unknown if a part is unknown. */
function add(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a + b
}

function hasSamePrice(a: Sum | undefined, b: Sum): boolean {
  if (a === undefined) return false
  const [priceA, priceB] = [toPrice(a.total), toPrice(b.total)]
  return priceA !== null && priceB !== null && Math.abs(priceA / priceB - 1) <= SAME_PRICE
}

function toPrice({ quantity, valueUsd }: Holding): number | null {
  return quantity === null || valueUsd === null || quantity === 0 || valueUsd === 0 ? null : valueUsd / quantity
}

/** Orders by value, then by name, so that the order is deterministic. */
function compare(a: Holding, b: Holding): number {
  const nameOf = ({ symbol, chain, contract, address }: Holding) =>
    `${symbol} ${chain} ${contract ?? symbol} ${address ?? ''}`
  return (b.valueUsd ?? -1) - (a.valueUsd ?? -1) || (nameOf(a) < nameOf(b) ? -1 : nameOf(a) > nameOf(b) ? 1 : 0)
}

const order = <H extends Holding>(holdings: readonly H[]): H[] => [...holdings].sort(compare)

const byTotal = (sums: readonly Sum[]): Sum[] => [...sums].sort((a, b) => compare(a.total, b.total))
