import { readPages } from '../logs/contract-logs.ts'
import type { Node, RpcLog } from '../logs/node.ts'
import type { ReferencePool } from './exchanges.ts'
import { findLast } from './find-last.ts'
import { decodeRootPrice, SWAP_TOPICS, toSwapFault } from './swaps.ts'

/** A position in the order of a chain's logs. */
export type Place = Pick<RpcLog, 'blockNumber' | 'logIndex'>

/** Returns the price of a coin in USD at a log; undefined if the pool's last trade before it is too old or unreadable. */
export interface PriceAtPlace {
  (place: Place): number | undefined
  /** Why a trade of the pool has no price, if any trade has none. */
  readonly fault?: string | undefined
}

const byPlace = (a: Place, b: Place) => a.blockNumber - b.blockNumber || a.logIndex - b.logIndex
const isAtOrBefore = (a: Place, b: Place) => byPlace(a, b) <= 0

/**
 * Reads the coin's prices in a chain's reference pool at these logs (at least one). The look-back depends only on the
 * log, so a log has the same price in every range.
 */
export async function readReferencePrices(
  node: Node,
  reference: ReferencePool,
  places: readonly Place[],
  signal: AbortSignal,
): Promise<PriceAtPlace> {
  const blocks = places.map(({ blockNumber }) => blockNumber)
  const [first, to] = [blocks.reduce((a, b) => Math.min(a, b)), blocks.reduce((a, b) => Math.max(a, b))]
  const from = Math.max(0, first - reference.maxAgeBlocks)
  const sorted = [...places].sort(byPlace)
  const logs: RpcLog[] = []
  // An unreadable trade stays in the list: the price after it is not the one before it.
  for await (const page of readPages(node, { contracts: [reference], topics: SWAP_TOPICS, from, to }, signal)) {
    for (const log of toNeeded(page, sorted, reference)) logs.push(log)
  }
  return toPriceAtPlace(logs, reference)
}

/**
 * Selects the logs of a page that directly precede one of the places, and the last log of the page, because places of
 * later pages may follow it. Other logs are dropped: the pool has far more trades than there are places.
 */
function toNeeded(page: readonly RpcLog[], places: readonly Place[], reference: ReferencePool): RpcLog[] {
  const own = page.filter(({ address, removed }) => address === reference.address && !removed).sort(byPlace)
  let next = 0
  return own.filter((log, at) => {
    const after = own[at + 1]
    for (let place = places[next]; place !== undefined && !isAtOrBefore(log, place); place = places[next]) next += 1
    const place = places[next]
    return after === undefined || (place !== undefined && !isAtOrBefore(after, place))
  })
}

/**
 * Returns a lookup of prices; the pool's logs may be unordered. After a trade whose price cannot be read, the price is
 * unknown until the next trade.
 */
export function toPriceAtPlace(logs: readonly RpcLog[], reference: ReferencePool): PriceAtPlace {
  const points = logs
    .filter(({ address, removed }) => address === reference.address && !removed)
    .map((log) => ({ log, price: toPrice(log, reference) }))
    .sort((a, b) => byPlace(a.log, b.log))
  const unpriced = points.find(({ price }) => price === undefined)?.log
  const priceAt = (place: Place) => {
    const point = findLast(points, ({ log }) => isAtOrBefore(log, place))
    return point && place.blockNumber - point.log.blockNumber <= reference.maxAgeBlocks ? point.price : undefined
  }
  return Object.assign(priceAt, { fault: unpriced && toFault(unpriced) })
}

const toFault = (log: RpcLog) =>
  `reference pool: ${toSwapFault(log) ?? `log ${log.logIndex} of ${log.transactionHash} has no price`}`

/**
 * Returns the dollar price of one coin after a swap. The pool's price is token 1 per token 0, in smallest units and as
 * a square root.
 */
function toPrice(log: RpcLog, { coin, dollar }: ReferencePool): number | undefined {
  const root = decodeRootPrice(log)
  if (root === undefined || root === 0n) return undefined
  const ratio = (Number(root) / 2 ** 96) ** 2
  const dollars = dollar.address < coin.address ? 1 / ratio : ratio
  return dollars * 10 ** (coin.decimals - dollar.decimals)
}
