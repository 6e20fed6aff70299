import {
  type DaoTreasuryRow,
  type HoldingRow,
  heldQuantity,
  heldValue,
  sumValues,
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
  readonly symbol: string
  readonly quantity: number | null
  readonly valueUsd: number | null
  /** Source of the price; null without one. */
  readonly priceSource: string | null
  /** Set if the source marks the token as the DAO's own. */
  readonly isOwn?: true
  /** Why a member is invalid, such as the value, which then counts as unknown. */
  readonly fault?: string
}

/** A treasury as reported by a source. */
export interface Held {
  readonly holdings: readonly Holding[]
  /** Number of tokens left out as spam; null if the source does not report it. */
  readonly spamCount: number | null
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

/**
 * Merges holdings of the same token. On one chain, that is the same contract. Across chains, it is the same symbol with
 * prices within 1 %. The symbol alone is not sufficient, because anyone can use it: a holding without a price is not
 * merged, and two contracts of one chain are never the same token. Sorted by value, largest first, holdings without a
 * value last.
 */
export function mergeHoldings(holdings: readonly Holding[]): Sum[] {
  const groups: { members: Sum[]; chains: Set<string> }[] = []
  for (const sum of byTotal(sumContracts(holdings))) {
    const { chain } = sum.total
    const group = groups.find(({ members, chains }) => !chains.has(chain) && isSameToken(members[0]?.total, sum.total))
    if (group === undefined) groups.push({ members: [sum], chains: new Set([chain]) })
    else {
      group.members.push(sum)
      group.chains.add(chain)
    }
  }
  const sums = groups.flatMap(({ members: [first, ...rest] }) => (first ? [rest.reduce(join, first)] : []))
  return byTotal(sums)
}

/**
 * Builds the row of all holdings. Undefined if nothing has a price, because the treasury's value is then unknown.
 * Holdings with a quantity of 0, an unknown or an invalid quantity are left out.
 */
export function toTreasuryRow(
  { key, kindOf }: Pick<TreasuryDao, 'key' | 'kindOf'>,
  at: number,
  source: string,
  { holdings, spamCount, faults: heldFaults = [] }: Held,
): Candidate<DaoTreasuryRow> | undefined {
  const counted = holdings.filter(({ quantity }) => orNull(heldQuantity, quantity) !== null).map(toPlausible)
  const lost = holdings.filter(({ quantity }) => orNull(heldQuantity, quantity) === null)
  const faults = [
    ...heldFaults,
    ...lost.map(({ fault }) => fault ?? 'holdings.*.quantity: no amount that can be'),
    ...counted.flatMap(({ fault }) => fault ?? []),
  ]
  const sums = mergeHoldings(counted.filter(({ quantity }) => quantity !== 0))
  const tokens = sums.map(({ total: { symbol, quantity, valueUsd } }) => ({ symbol, quantity, value_usd: valueUsd }))
  if (tokens.every(({ value_usd }) => value_usd === null)) return undefined
  return {
    ...{ dao: key, observed_at: toIso(at), value_usd: sumValues(tokens), tokens },
    ...{ holdings: toHoldingRows(sums, kindOf), spam_count: spamCount, source },
    ...(faults.length === 0 ? {} : { [OMITTED]: faults }),
  }
}

/** An invalid value becomes unknown. */
function toPlausible(holding: Holding): Holding {
  if (holding.valueUsd === null || orNull(heldValue, holding.valueUsd) !== null) return holding
  return { ...holding, valueUsd: null, priceSource: null, fault: 'holdings.*.value_usd: no value that can be' }
}

/**
 * Returns the parts of the sums, largest value first. If a total is unknown because of one part, the values of all its
 * parts become unknown, so that parts and totals agree. A token that is the same as one of the DAO's own tokens is also
 * its own on other chains.
 */
function toHoldingRows(sums: readonly Sum[], kindOf: TreasuryDao['kindOf']): Candidate<HoldingRow>[] {
  const complete = sums.flatMap(({ parts, total }) => {
    const isOwn = parts.some((part) => kindOf(part) === 'own')
    return parts.map((part) => ({
      ...part,
      ...(total.valueUsd === null ? { valueUsd: null, priceSource: null } : {}),
      kind: isOwn ? 'own' : kindOf(part),
    }))
  })
  return order(complete).map(({ chain, address, contract, symbol, quantity, valueUsd, priceSource, kind }) => {
    return { chain, address, contract, symbol, quantity, value_usd: valueUsd, price_source: priceSource, kind }
  })
}

function sumContracts(holdings: readonly Holding[]): Sum[] {
  const sums = new Map<string, Sum>()
  for (const holding of holdings) {
    const key = `${holding.chain}:${holding.contract ?? holding.symbol}`
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

function isSameToken(a: Holding | undefined, b: Holding): boolean {
  if (a === undefined || a.symbol.toUpperCase() !== b.symbol.toUpperCase()) return false
  const [priceA, priceB] = [toPrice(a), toPrice(b)]
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
