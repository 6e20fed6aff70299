import type { Composition } from '../../shared/registry/index-records.ts'
import type { PriceIn, Run } from './runs.ts'

/** What of the change of the index each token made, by its key, and what rebalancing made; in percent of the value before. */
export interface Contributions {
  readonly change: number
  readonly rebalance: number
  readonly of: ReadonlyMap<number, number>
}

/** The slots whose prices tell what was contributed in some runs up to a slot. */
export const toSlots = (runs: readonly Run[], at: number): number[] => [
  ...new Set([...runs.flatMap(({ first, last }) => [first, last]), at]),
]

/**
 * What a composition is worth: added in the order of the tokens' keys, as the index is, because sums of floats depend on
 * their order. NaN where a price is not known.
 */
export function toWorth({ elements }: Composition, priceOf: (token: number) => number | undefined): number {
  const members = elements.toSorted((a, b) => a.token.key - b.token.key)
  return members.reduce((sum, { token, quantity }) => sum + Number(quantity) * (priceOf(token.key) ?? Number.NaN), 0)
}

/**
 * What each token contributed to the change of the index over some runs up to the slot `at`: in each run its quantity times
 * the change of its price. A run ends in the slot in which the next one begins, at the prices of that slot; a member without a
 * price there ends with its last one. What the new composition is worth more than the old one there is rebalancing. Both
 * together are the change. Nothing where a price is no longer known, or where there was no value before.
 */
export function toContributions(runs: readonly Run[], at: number, priceIn: PriceIn): Contributions | undefined {
  const [begin] = runs
  if (begin === undefined) return undefined
  const before = toWorth(begin.composition, (token) => priceIn(token, begin.first))
  const gains = new Map<number, number>()
  let rebalanced = 0
  for (const [index, { composition, first, last }] of runs.entries()) {
    const next = runs[index + 1]
    const endPrice = (token: number) =>
      next === undefined ? priceIn(token, at) : (priceIn(token, next.first) ?? priceIn(token, last))
    for (const { token, quantity } of composition.elements) {
      const gain = Number(quantity) * ((endPrice(token.key) ?? Number.NaN) - (priceIn(token.key, first) ?? Number.NaN))
      gains.set(token.key, (gains.get(token.key) ?? 0) + gain)
    }
    if (next === undefined) continue
    rebalanced += toWorth(next.composition, (token) => priceIn(token, next.first)) - toWorth(composition, endPrice)
  }
  const after = toWorth((runs.at(-1) as Run).composition, (token) => priceIn(token, at))
  const toPercent = (usd: number) => (100 * usd) / before
  const change = toPercent(after - before)
  const of = new Map([...gains].map(([token, usd]) => [token, toPercent(usd)]))
  const isKnown = [change, rebalanced, ...of.values()].every(Number.isFinite)
  return isKnown ? { change, rebalance: toPercent(rebalanced), of } : undefined
}
