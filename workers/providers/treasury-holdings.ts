import {
  type DaoTreasuryRow,
  type HoldingRow,
  heldQuantity,
  heldValue,
  sumValues,
} from '../../shared/datasets/treasury.ts'
import { type Candidate, LEFT_OUT } from '../job/define-job.ts'
import { orNull, toIso } from './answer.ts'
import type { TreasuryDao } from './contracts/treasury-daos.ts'

/** How much of one contract an address holds, in whole tokens and in USD; null is unknown. */
export interface Holding {
  /** Slug of the chain, or a word of the source's own where it tells no chain. */
  readonly chain: string
  /** Null where the source tells of all addresses together. */
  readonly address: string | null
  /** Null where the source names tokens by their symbols only: each is one token of its chain then. */
  readonly contract: string | null
  readonly symbol: string
  readonly quantity: number | null
  readonly valueUsd: number | null
  /** Whose price the value is of; null without one. */
  readonly priceSource: string | null
  /** Set where the source says that it is the DAO's own token. */
  readonly isOwn?: true
  /** What the source says of it and cannot be, such as its value, which is unknown then. */
  readonly fault?: string
}

/** What a source says of a treasury. */
export interface Held {
  readonly holdings: readonly Holding[]
  /** How many tokens were left out as spam; null where the source does not say. */
  readonly spamCount: number | null
  /** What else of the answer cannot be used. */
  readonly faults?: readonly string[]
}

/** Holdings of one token, and what they come to. */
export interface Sum {
  readonly parts: readonly Holding[]
  readonly total: Holding
}

/** Prices of one token on two chains differ by what it costs to move it between them, at most. */
const SAME_PRICE = 0.01

/**
 * Adds up holdings of the same token. On one chain that is the same contract. Across chains it is the same symbol at
 * the same price, to within 1 %. The symbol alone does not do, because anybody can use it: a holding without a price
 * stays by itself, and two contracts of one chain are never the same token. The largest value comes first, holdings
 * without a value last.
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
 * A row of everything that is held; undefined where nothing has a price, because then the treasury's value is unknown.
 * Holdings with a quantity of 0 are left out, and so are those whose quantity is unknown or cannot be.
 */
export function toTreasuryRow(
  { key, kindOf }: Pick<TreasuryDao, 'key' | 'kindOf'>,
  at: number,
  source: string,
  { holdings, spamCount, faults: others = [] }: Held,
): Candidate<DaoTreasuryRow> | undefined {
  const counted = holdings.filter(({ quantity }) => orNull(heldQuantity, quantity) !== null).map(toPlausible)
  const lost = holdings.filter(({ quantity }) => orNull(heldQuantity, quantity) === null)
  const faults = [
    ...others,
    ...lost.map(({ fault }) => fault ?? 'holdings.*.quantity: no amount that can be'),
    ...counted.flatMap(({ fault }) => fault ?? []),
  ]
  const sums = mergeHoldings(counted.filter(({ quantity }) => quantity !== 0))
  const tokens = sums.map(({ total: { symbol, quantity, valueUsd } }) => ({ symbol, quantity, value_usd: valueUsd }))
  if (tokens.every(({ value_usd }) => value_usd === null)) return undefined
  return {
    ...{ dao: key, observed_at: toIso(at), value_usd: sumValues(tokens), tokens },
    ...{ holdings: toHoldingRows(sums, kindOf), spam_count: spamCount, source },
    ...(faults.length === 0 ? {} : { [LEFT_OUT]: faults }),
  }
}

/** A value that cannot be is unknown. */
function toPlausible(holding: Holding): Holding {
  if (holding.valueUsd === null || orNull(heldValue, holding.valueUsd) !== null) return holding
  return { ...holding, valueUsd: null, priceSource: null, fault: 'holdings.*.value_usd: no value that can be' }
}

/**
 * The parts of the sums, the largest value first. Where a sum is unknown for one of its parts, all of them are, so that the
 * parts and the sums come to the same. What is the same token as one of the DAO's own is its own on other chains too.
 */
function toHoldingRows(sums: readonly Sum[], kindOf: TreasuryDao['kindOf']): Candidate<HoldingRow>[] {
  const known = sums.flatMap(({ parts, total }) => {
    const isOwn = parts.some((part) => kindOf(part) === 'own')
    return parts.map((part) => ({
      ...part,
      ...(total.valueUsd === null ? { valueUsd: null, priceSource: null } : {}),
      kind: isOwn ? 'own' : kindOf(part),
    }))
  })
  return order(known).map(({ chain, address, contract, symbol, quantity, valueUsd, priceSource, kind }) => {
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

function join(one: Sum, other: Sum): Sum {
  const total = {
    ...one.total,
    quantity: add(one.total.quantity, other.total.quantity),
    valueUsd: add(one.total.valueUsd, other.total.valueUsd),
  }
  return { parts: [...one.parts, ...other.parts], total }
}

/** What is unknown in a part is unknown in the whole. */
function add(one: number | null, other: number | null): number | null {
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
function compare(one: Holding, other: Holding): number {
  const nameOf = ({ symbol, chain, contract, address }: Holding) =>
    `${symbol} ${chain} ${contract ?? symbol} ${address ?? ''}`
  return (
    (other.valueUsd ?? -1) - (one.valueUsd ?? -1) ||
    (nameOf(one) < nameOf(other) ? -1 : nameOf(one) > nameOf(other) ? 1 : 0)
  )
}

const order = <H extends Holding>(holdings: readonly H[]): H[] => [...holdings].sort(compare)

const byTotal = (sums: readonly Sum[]): Sum[] => [...sums].sort((one, other) => compare(one.total, other.total))
