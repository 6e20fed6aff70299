import type { Exclusion, Market, Rule } from './rule.ts'
import { sum } from './sum.ts'

/**
 * The result of a rebalance: the weights of the held candidates by index, and the reasons why the others are not held.
 */
export interface Decision {
  readonly weights: ReadonlyMap<number, number>
  readonly excluded: ReadonlyMap<number, Exclusion>
}

/**
 * Chooses the members and weights of a basket with the values of the day `known`, for trades at prices of the day `traded`
 * (indexes of days). Nothing later than `known` decides what is held, except that a token without a price on `traded` cannot
 * be bought.
 */
export function decide(rule: Rule, market: Market, { known, traded }: { known: number; traded: number }): Decision {
  const { days, candidates, prices, marketCaps } = market
  const excluded = new Map<number, Exclusion>()
  const eligible: number[] = []
  const [size, at] = [days.length, days[traded] ?? Number.NaN]
  const needsMarketCap = rule.weights === 'marketCap' || rule.top !== undefined
  const isListed = (token: number) =>
    prices.subarray(token * size, token * size + known + 1).some((price) => !Number.isNaN(price))
  const findReason = (token: number): Exclusion | undefined => {
    const { until = Number.POSITIVE_INFINITY, kind } = candidates[token] ?? {}
    if (until <= at) return 'ended'
    if (!isListed(token)) return 'notYetListed'
    if (rule.top !== undefined && kind !== undefined) return kind
    const isPriced = [known, traded].every((day) => (prices[token * size + day] ?? Number.NaN) > 0)
    if (!isPriced) return 'noPrice'
    return !needsMarketCap || (marketCaps[token * size + known] ?? Number.NaN) > 0 ? undefined : 'noMarketCap'
  }
  for (let token = 0; token < candidates.length; token += 1) {
    const reason = findReason(token)
    if (reason === undefined) eligible.push(token)
    else excluded.set(token, reason)
  }
  const capOf = (token: number) => marketCaps[token * size + known] ?? Number.NaN
  // The sort is stable, and candidates are in the order of their ids.
  const largest = rule.top === undefined ? eligible : eligible.toSorted((a, b) => capOf(b) - capOf(a))
  for (const token of largest.slice(rule.top ?? largest.length)) excluded.set(token, 'belowTop')
  const held = eligible.filter((token) => !excluded.has(token))
  return { weights: toWeights(rule, held, { capOf, shareOf: (token) => candidates[token]?.share ?? 0 }), excluded }
}

interface Sizes {
  readonly capOf: (token: number) => number
  readonly shareOf: (token: number) => number
}

/** Weights of the held tokens, which sum to 1; none if nothing is held. */
function toWeights(rule: Rule, held: readonly number[], { capOf, shareOf }: Sizes): Map<number, number> {
  const toParts = { fixed: shareOf, equal: () => 1, marketCap: capOf }[rule.weights]
  const parts = new Map(held.map((token) => [token, toParts(token)]))
  const most = rule.cap === undefined ? 1 : Math.max(rule.cap, 1 / held.length)
  return inCap(parts, most)
}

/**
 * Scales parts to weights of at most `most`. The excess of a token is distributed over the others in proportion, until
 * no weight exceeds the limit.
 */
function inCap(parts: ReadonlyMap<number, number>, most: number): Map<number, number> {
  const capped = new Set<number>()
  for (;;) {
    const free = [...parts].filter(([token]) => !capped.has(token))
    const rest = 1 - most * capped.size
    const total = sum(free.map(([, part]) => part))
    const toWeight = (token: number, part: number) => (capped.has(token) ? most : (rest * part) / total)
    const above = free.filter(([token, part]) => toWeight(token, part) > most)
    if (above.length === 0) return new Map([...parts].map(([token, part]) => [token, toWeight(token, part)]))
    for (const [token] of above) capped.add(token)
  }
}
