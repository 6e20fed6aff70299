import { readPages } from '../logs/contract-logs.ts'
import type { Node, RpcLog } from '../logs/node.ts'
import type { ReferencePool } from './exchanges.ts'
import { findLast } from './find-last.ts'
import { decodeRootPrice, SWAP_TOPICS } from './swaps.ts'

/** A place in the order of a chain's logs. */
export type Place = Pick<RpcLog, 'blockNumber' | 'logIndex'>

/** The price of a coin in USD at a log; undefined when the pool had no trade for too long before it. */
export type PriceAtPlace = (place: Place) => number | undefined

const byPlace = (a: Place, b: Place) => a.blockNumber - b.blockNumber || a.logIndex - b.logIndex
const isAtOrBefore = (a: Place, b: Place) => byPlace(a, b) <= 0

/**
 * The prices of the coin in a chain's reference pool at these logs, of which there is at least one. How far back is
 * read depends on each log alone, so that a log has the same price whatever range it is read in.
 */
export async function readReferencePrices(
  node: Node,
  reference: ReferencePool,
  places: readonly Place[],
  signal: AbortSignal,
): Promise<PriceAtPlace> {
  const blocks = places.map(({ blockNumber }) => blockNumber)
  const [first, to] = [blocks.reduce((a, b) => Math.min(a, b)), blocks.reduce((a, b) => Math.max(a, b))]
  const from = Math.max(0, first - reference.lookBack)
  const sorted = [...places].sort(byPlace)
  const logs: RpcLog[] = []
  for await (const page of readPages(node, { contracts: [reference], topics: SWAP_TOPICS, from, to }, signal)) {
    for (const log of toNeeded(page, sorted, reference)) logs.push(log)
  }
  return toPriceAtPlace(logs, reference)
}

/**
 * The logs of a page that are the last before one of the places, and the last of the page, before which places of later
 * pages may come. The others are forgotten: the pool is traded far more often than there are places.
 */
function toNeeded(page: readonly RpcLog[], places: readonly Place[], reference: ReferencePool): RpcLog[] {
  const priced = page.filter((log) => !log.removed && toPrice(log, reference) !== undefined).sort(byPlace)
  let next = 0
  return priced.filter((log, at) => {
    const after = priced[at + 1]
    for (let place = places[next]; place !== undefined && !isAtOrBefore(log, place); place = places[next]) next += 1
    const place = places[next]
    return after === undefined || (place !== undefined && !isAtOrBefore(after, place))
  })
}

/** Looks prices up in the pool's logs, which come in any order. */
export function toPriceAtPlace(logs: readonly RpcLog[], reference: ReferencePool): PriceAtPlace {
  const points = logs
    .filter(({ address, removed }) => address === reference.address && !removed)
    .flatMap((log) => {
      const price = toPrice(log, reference)
      return price === undefined ? [] : [{ blockNumber: log.blockNumber, logIndex: log.logIndex, price }]
    })
    .sort(byPlace)
  return (place) => {
    const point = findLast(points, (one) => isAtOrBefore(one, place))
    return point && place.blockNumber - point.blockNumber <= reference.lookBack ? point.price : undefined
  }
}

/** Dollars for one coin after a swap. The pool's price is token 1 for token 0, in smallest units and as a square root. */
function toPrice(log: RpcLog, { coin, dollar }: ReferencePool): number | undefined {
  const root = decodeRootPrice(log)
  if (root === undefined || root === 0n) return undefined
  const ratio = (Number(root) / 2 ** 96) ** 2
  const dollars = dollar.address < coin.address ? 1 / ratio : ratio
  return dollars * 10 ** (coin.decimals - dollar.decimals)
}
