import type { Composition } from '../../shared/registry/index-records.ts'
import type { PriceIn, Run } from './runs.ts'

/** Contribution of each token (by key) and of rebalancing to the index's change, in percent of the value before. */
export interface Contributions {
  readonly change: number
  readonly rebalance: number
  readonly of: ReadonlyMap<number, number>
}

/** The slots with prices that are needed for the contributions of some runs up to the slot `at`. */
export const toSlots = (runs: readonly Run[], at: number): number[] => [
  ...new Set([...runs.flatMap(({ first, last }) => [first, last]), at]),
]

/**
 * The value of a composition. Values are added in the order of the tokens' keys, like the index, because floating-point
 * sums depend on the order. NaN if a price is unknown.
 */
export function toWorth({ elements }: Composition, priceOf: (token: number) => number | undefined): number {
  const members = elements.toSorted((a, b) => a.token.key - b.token.key)
  return members.reduce((sum, { token, quantity }) => sum + Number(quantity) * (priceOf(token.key) ?? Number.NaN), 0)
}

/**
 * Contribution of each token to the index's change over some runs up to the slot `at`: in each run, quantity times
 * price change. A run ends in the slot in which the next one begins, at that slot's prices; a member without a price
 * there ends with its last one. The difference in value between the new and the old composition in that slot is
 * rebalancing. All contributions add up to the change. Returns undefined if a price is no longer known or there was no
 * value before.
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
  const isComplete = [change, rebalanced, ...of.values()].every(Number.isFinite)
  return isComplete ? { change, rebalance: toPercent(rebalanced), of } : undefined
}
