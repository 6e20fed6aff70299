import type { HttpClient } from '../../../http/client.ts'
import type { Node, RpcLog } from '../logs/node.ts'
import type { DexChain, QuoteToken } from './exchanges.ts'
import type { Pool } from './pools.ts'
import { fetchPrices } from './quote-prices.ts'
import { type PriceAtPlace, readReferencePrices } from './reference-prices.ts'
import type { Swap } from './swaps.ts'

/** Dollars for one of a quote token at the log of a swap; undefined where nobody tells. */
export type UsdAt = (quote: QuoteToken, log: RpcLog) => number | undefined

interface Sources {
  readonly chain: DexChain
  readonly node: Node
  readonly prices: HttpClient
  readonly pools: ReadonlyMap<string, Pool>
  /** In Unix seconds. */
  readonly timeOf: (block: number) => number
}

/**
 * Finds the dollar prices of the coins that the swaps' pools quote in. The chain's reference pool has a price for each
 * log, which counts because a coin's price changes inside a block too. Where the pool has none, a chart of prices
 * stands in (docs/providers.md, section 6.2).
 */
export async function readDollars(sources: Sources, swaps: readonly Swap[], signal: AbortSignal): Promise<UsdAt> {
  const prices = new Map<string, (log: RpcLog) => number | undefined>()
  for (const [coin, logs] of toLogsByCoin(sources, swaps)) {
    prices.set(coin, await readCoin(sources, coin, logs, signal))
  }
  return ({ usd }, log) => (usd === 'dollar' ? 1 : prices.get(usd)?.(log))
}

function toLogsByCoin({ chain, pools }: Sources, swaps: readonly Swap[]): Map<string, RpcLog[]> {
  const coins = new Map(chain.quotes.map(({ address, usd }) => [address, usd]))
  const byCoin = new Map<string, RpcLog[]>()
  for (const { log } of swaps) {
    const coin = coins.get(pools.get(log.address)?.quote ?? '')
    if (coin === undefined || coin === 'dollar') continue
    const logs = byCoin.get(coin) ?? []
    logs.push(log)
    byCoin.set(coin, logs)
  }
  return byCoin
}

async function readCoin(
  { chain, node, prices, timeOf }: Sources,
  coin: string,
  logs: readonly RpcLog[],
  signal: AbortSignal,
): Promise<(log: RpcLog) => number | undefined> {
  const { reference } = chain
  const fromPool: PriceAtPlace =
    reference?.coin.usd === coin ? await readReferencePrices(node, reference, logs, signal) : () => undefined
  const untold = logs.filter((log) => fromPool(log) === undefined).map(({ blockNumber }) => timeOf(blockNumber))
  if (untold.length === 0) return fromPool
  const [from, to] = [untold.reduce((a, b) => Math.min(a, b)), untold.reduce((a, b) => Math.max(a, b))]
  const fromChart = await fetchPrices(prices, coin, from, to, signal)
  return (log) => fromPool(log) ?? fromChart(timeOf(log.blockNumber))
}
