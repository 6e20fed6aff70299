import type { DexTradeRow } from '../../../shared/datasets/dex-trades.ts'
import type { Candidate } from '../../define.ts'
import type { HttpClient } from '../http.ts'
import { toBatches } from '../paging.ts'
import type { TradeRequest } from '../sources/trades.ts'
import type { DexChain } from './exchanges.ts'
import { createPager } from './log-pages.ts'
import type { Node } from './node.ts'
import type { Pool } from './pools.ts'
import { fetchPrices, type PriceAt } from './quote-prices.ts'
import { type RpcLog, type Swap, toSwaps } from './swaps.ts'
import { toTrades } from './trades.ts'

/** Pools of a chain to read from one block to another, both inclusive. */
export interface Stretch {
  readonly pools: readonly Pool[]
  readonly from: number
  readonly to: number
}

/** What it takes to read the trades of one chain. */
export interface ChainReader {
  readonly slug: string
  readonly chain: DexChain
  readonly node: Node
  readonly prices: HttpClient
}

/** Nodes bound the size of a filter; 100 pools of a busy hour are some thousand logs. */
const POOLS_PER_CALL = 100

/** The trades of the tokens in the stretches; logs that give none are counted and told. */
export async function readTrades(
  reader: ChainReader,
  stretches: readonly Stretch[],
  { entities, log, signal }: TradeRequest,
): Promise<Candidate<DexTradeRow>[]> {
  const pools = new Map(stretches.flatMap((stretch) => stretch.pools.map((pool) => [pool.address, pool])))
  const logs = await readLogs(reader.node, stretches, signal)
  const { swaps, skipped } = toSwaps(logs, pools)
  const times = await readTimes(reader.node, swaps, signal)
  const senders = await reader.node.senders([...new Set(swaps.map((swap) => swap.log.transactionHash))], signal)
  const prices = await readPrices(reader, pools.values(), [...times.values()], signal)
  const facts = {
    chain: reader.slug,
    tokens: new Map(entities.map((token) => [token.contractAddress, token])),
    quotes: new Map(reader.chain.quotes.map((quote) => [quote.address, quote])),
    pools,
    timeOf: (block: number) => times.get(block) ?? Number.NaN,
    senderOf: (hash: string) => senders.get(hash) ?? '',
    usdOf: ({ usd }: { usd: string }, seconds: number) => prices.get(usd)?.(seconds),
  }
  const trades = toTrades(swaps, facts, skipped)
  const told = { chain: reader.slug, logs: logs.length, trades: trades.length, skipped: Object.fromEntries(skipped) }
  log.info(told, 'swap logs read')
  return trades
}

async function readLogs(node: Node, stretches: readonly Stretch[], signal: AbortSignal): Promise<RpcLog[]> {
  const readPages = createPager()
  const logs: RpcLog[][] = []
  for (const { pools, from, to } of stretches) {
    for (const batch of toBatches(pools, POOLS_PER_CALL)) {
      const addresses = batch.map(({ address }) => address)
      logs.push(await readPages(from, to, (first, end, last) => node.swapLogs(addresses, first, end, last, signal)))
    }
  }
  return logs.flat()
}

/** Block times in Unix seconds: from the logs where the node tells them there, else from the headers. */
async function readTimes(node: Node, swaps: readonly Swap[], signal: AbortSignal): Promise<Map<number, number>> {
  const times = new Map<number, number>()
  const wanted = new Set<number>()
  for (const { log } of swaps) {
    if (log.blockTimestamp === undefined) wanted.add(log.blockNumber)
    else times.set(log.blockNumber, log.blockTimestamp)
  }
  const missing = [...wanted].filter((number) => !times.has(number))
  const blocks = await node.blocks(missing, signal)
  for (const [at, number] of missing.entries()) times.set(number, blocks[at]?.timestamp ?? Number.NaN)
  return times
}

/** Prices of the coins that the pools quote in, over the times of their swaps. */
async function readPrices(
  reader: ChainReader,
  pools: Iterable<Pool>,
  times: readonly number[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, PriceAt>> {
  const prices = new Map<string, PriceAt>()
  if (times.length === 0) return prices
  const [from, to] = [times.reduce((a, b) => Math.min(a, b)), times.reduce((a, b) => Math.max(a, b))]
  const quoted = new Set([...pools].map(({ quote }) => quote))
  for (const { address, usd } of reader.chain.quotes) {
    if (usd === 'dollar' || prices.has(usd) || !quoted.has(address)) continue
    prices.set(usd, await fetchPrices(reader.prices, usd, from, to, signal))
  }
  return prices
}
