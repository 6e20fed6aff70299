import type { HttpClient } from '../../../http/client.ts'
import type { Node, RpcLog } from '../logs/node.ts'
import type { DexChain, QuoteToken } from './exchanges.ts'
import type { Pool } from './pools.ts'
import { fetchPrices } from './quote-prices.ts'
import { type PriceAtPlace, readReferencePrices } from './reference-prices.ts'
import type { Swap } from './swaps.ts'

/** Returns the price of a quote token in dollars at the log of a swap; undefined if no source has it. */
export interface UsdAt {
  (quote: QuoteToken, log: RpcLog): number | undefined
  /** Returns why a price of a quote token is unknown, if its source has prices that cannot be used. */
  readonly faultOf?: (quote: QuoteToken) => string | undefined
}

interface Sources {
  readonly chain: DexChain
  readonly node: Node
  readonly prices: HttpClient
  readonly pools: ReadonlyMap<string, Pool>
  /** In Unix seconds. */
  readonly timeOf: (block: number) => number
}

/**
 * Reads the dollar prices of the coins in which the swaps' pools quote. The chain's reference pool has a price for each
 * log, which matters because a price may change within a block. If the pool has no price, a chart of prices is used
 * (docs/providers.md, section 6.2).
 */
export async function readDollars(sources: Sources, swaps: readonly Swap[], signal: AbortSignal): Promise<UsdAt> {
  const prices = new Map<string, CoinPrices>()
  for (const [coin, logs] of toLogsByCoin(sources, swaps)) {
    prices.set(coin, await readCoin(sources, coin, logs, signal))
  }
  const usdAt = ({ usd }: QuoteToken, log: RpcLog) => (usd === 'dollar' ? 1 : prices.get(usd)?.at(log))
  return Object.assign(usdAt, { faultOf: ({ usd }: QuoteToken) => prices.get(usd)?.fault })
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

interface CoinPrices {
  readonly at: (log: RpcLog) => number | undefined
  readonly fault?: string | undefined
}

async function readCoin(
  { chain, node, prices, timeOf }: Sources,
  coin: string,
  logs: readonly RpcLog[],
  signal: AbortSignal,
): Promise<CoinPrices> {
  const { reference } = chain
  const fromPool: PriceAtPlace =
    reference?.coin.usd === coin ? await readReferencePrices(node, reference, logs, signal) : () => undefined
  const withoutPrice = logs.filter((log) => fromPool(log) === undefined).map(({ blockNumber }) => timeOf(blockNumber))
  if (withoutPrice.length === 0) return { at: fromPool }
  // The chart also has the prices after a trade of the pool that cannot be read.
  const [from, to] = [withoutPrice.reduce((a, b) => Math.min(a, b)), withoutPrice.reduce((a, b) => Math.max(a, b))]
  const fromChart = await fetchPrices(prices, coin, from, to, signal)
  return { at: (log) => fromPool(log) ?? fromChart(timeOf(log.blockNumber)), fault: fromChart.fault ?? fromPool.fault }
}
