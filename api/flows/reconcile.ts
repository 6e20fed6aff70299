import type { TimeRange } from '../../shared/intervals.ts'
import type { Balances } from './balances.ts'
import { type FlowInterval, type FlowSum, toAssetKey, toFlowBucket, toFlowBucketEnd } from './sums.ts'

/** Sums of an asset, and the change of its balance that they do not explain; null if a balance is unknown. */
export type ReconciledSum = FlowSum & { readonly unexplainedQuantity: number | null }

/** Balances are floats: a smaller difference in relation to the largest number is rounding. */
const ROUNDING = 1e-9

/** The balances of an asset at the start and end of a bucket; undefined if one of them is not known. */
function findBalances({ days, assets }: Balances, key: string, from: number, to: number) {
  const [first, last] = [days.get(from), days.get(to)]
  // Sources count different assets.
  if (!first?.isWhole || !last?.isWhole || first.source !== last.source) return undefined
  const [before, after] = [assets.get(key)?.byDay.get(from), assets.get(key)?.byDay.get(to)]
  // Sources leave out worthless tokens: an asset in neither list may be held.
  return before === undefined && after === undefined ? undefined : { before: before ?? 0, after: after ?? 0 }
}

function explain(sum: FlowSum, balances: Balances, to: number): number | null {
  if (sum.asset === null || sum.netQuantity === null) return null
  const found = findBalances(balances, toAssetKey(sum.asset), sum.at, to)
  if (found === undefined) return null
  const { before, after } = found
  const difference = after - before - sum.netQuantity
  const largest = Math.max(before, after, sum.inQuantity ?? 0, sum.outQuantity ?? 0)
  return Math.abs(difference) <= ROUNDING * largest ? 0 : difference
}

const toNothing = (at: number, asset: NonNullable<FlowSum['asset']>): FlowSum => ({
  ...{ at, kind: null, asset, inQuantity: 0, outQuantity: 0, netQuantity: 0 },
  ...{ inUsd: 0, outUsd: 0, netUsd: 0, transfers: 0, transfersWithoutPrice: 0 },
})

/**
 * Adds to the sums of each asset the change of its balance that its transfers do not explain: balance at the end minus
 * balance at the start minus received plus spent. A bucket without transfers is added if the balance changed.
 */
export function reconcile(
  sums: readonly FlowSum[],
  balances: Balances,
  { interval, range }: { readonly interval: FlowInterval; readonly range: TimeRange },
): ReconciledSum[] {
  const reconciled = sums.map((sum) => ({
    ...sum,
    unexplainedQuantity: explain(sum, balances, toFlowBucketEnd(sum.at, interval)),
  }))
  const known = new Set(sums.map(({ at, asset }) => `${at} ${asset && toAssetKey(asset)}`))
  const added: ReconciledSum[] = []
  const starts = [...balances.days.keys()].filter(
    (day) => day >= range.from && day < range.to && toFlowBucket(day, interval) === day,
  )
  for (const at of starts) {
    const to = toFlowBucketEnd(at, interval)
    for (const [key, asset] of balances.assets) {
      if (known.has(`${at} ${key}`)) continue
      const nothing = toNothing(at, asset)
      const unexplainedQuantity = explain(nothing, balances, to)
      if (unexplainedQuantity !== null && unexplainedQuantity !== 0) added.push({ ...nothing, unexplainedQuantity })
    }
  }
  const rank = ({ asset }: FlowSum) => (asset === null ? '' : toAssetKey(asset))
  return [...reconciled, ...added].sort((a, b) => a.at - b.at || (rank(a) < rank(b) ? -1 : 1))
}
