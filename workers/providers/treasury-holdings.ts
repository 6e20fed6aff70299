import { type DaoTreasuryRow, sumValues } from '../../shared/datasets/treasury.ts'
import type { Candidate } from '../job/define-job.ts'
import { toIso } from './answer.ts'

/** How much of one contract is held on one chain, in whole tokens and in USD; null is unknown. */
export interface Holding {
  readonly chain: string
  /** The contract's address, or a name of the source's own: unique within its chain. */
  readonly contract: string
  readonly symbol: string
  readonly quantity: number | null
  readonly valueUsd: number | null
}

/** Prices of one token on two chains differ by what it costs to move it between them, at most. */
const SAME_PRICE = 0.01

/**
 * Adds up holdings of the same token. On one chain that is the same contract. Across chains it is the same symbol at
 * the same price, to within 1 %. The symbol alone does not do, because anybody can use it: a holding without a price
 * stays by itself, and two contracts of one chain are never the same token. The largest value comes first, holdings
 * without a value last.
 */
export function mergeHoldings(holdings: readonly Holding[]): Holding[] {
  const groups: { members: Holding[]; chains: Set<string> }[] = []
  for (const holding of order(mergeContracts(holdings))) {
    const group = groups.find(({ members, chains }) => !chains.has(holding.chain) && isSameToken(members[0], holding))
    if (group === undefined) groups.push({ members: [holding], chains: new Set([holding.chain]) })
    else {
      group.members.push(holding)
      group.chains.add(holding.chain)
    }
  }
  return order(groups.flatMap(({ members: [first, ...rest] }) => (first ? [rest.reduce(add, first)] : [])))
}

/**
 * A row of everything that is held; undefined where nothing has a price, because then the treasury's value is unknown.
 * Holdings with a quantity of 0 are left out.
 */
export function toTreasuryRow(
  dao: number,
  at: number,
  source: string,
  holdings: readonly Holding[],
): Candidate<DaoTreasuryRow> | undefined {
  const tokens = mergeHoldings(holdings.filter(({ quantity }) => quantity !== 0)).map(
    ({ symbol, quantity, valueUsd }) => ({ symbol, quantity, value_usd: valueUsd }),
  )
  if (tokens.every(({ value_usd }) => value_usd === null)) return undefined
  return { dao, observed_at: toIso(at), value_usd: sumValues(tokens), tokens, source }
}

function mergeContracts(holdings: readonly Holding[]): Holding[] {
  const merged = new Map<string, Holding>()
  for (const holding of holdings) {
    const key = `${holding.chain}:${holding.contract}`
    const before = merged.get(key)
    merged.set(key, before === undefined ? holding : add(before, holding))
  }
  return [...merged.values()]
}

function add(one: Holding, other: Holding): Holding {
  return {
    ...one,
    quantity: sum(one.quantity, other.quantity),
    valueUsd: sum(one.valueUsd, other.valueUsd),
  }
}

/** What is unknown in a part is unknown in the whole. */
function sum(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : one + other
}

function isSameToken(one: Holding | undefined, other: Holding): boolean {
  if (one === undefined || one.symbol.toUpperCase() !== other.symbol.toUpperCase()) return false
  const [price, otherPrice] = [toPrice(one), toPrice(other)]
  return price !== null && otherPrice !== null && Math.abs(price / otherPrice - 1) <= SAME_PRICE
}

function toPrice({ quantity, valueUsd }: Holding): number | null {
  return quantity === null || valueUsd === null || quantity === 0 || valueUsd === 0 ? null : valueUsd / quantity
}

/** By value, then by name, so that the same holdings always come out in the same order. */
function order(holdings: readonly Holding[]): Holding[] {
  const nameOf = ({ symbol, chain, contract }: Holding) => `${symbol} ${chain} ${contract}`
  return [...holdings].sort(
    (one, other) =>
      (other.valueUsd ?? -1) - (one.valueUsd ?? -1) ||
      (nameOf(one) < nameOf(other) ? -1 : nameOf(one) > nameOf(other) ? 1 : 0),
  )
}
