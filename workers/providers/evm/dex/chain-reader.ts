import type { DexTradeRow } from '../../../../shared/datasets/dex-trades.ts'
import type { Token } from '../../../../shared/registry/entities.ts'
import type { Logger } from '../../../../shared/telemetry/log.ts'
import type { HttpClient } from '../../../http/client.ts'
import type { Candidate } from '../../../job/define-job.ts'
import { readLogTimes } from '../logs/block-times.ts'
import type { Node, RpcLog } from '../logs/node.ts'
import { readDollars } from './dollars.ts'
import type { DexChain } from './exchanges.ts'
import type { Pool } from './pools.ts'
import { toSwaps } from './swaps.ts'
import { toTrades } from './trade-rows.ts'

/** What it takes to read the trades of one chain. */
export interface ChainReader {
  readonly slug: string
  readonly chain: DexChain
  readonly node: Node
  readonly prices: HttpClient
  /**
   * How much a run reads before it is stored: logs and pages together. Each log costs a call for its sender, and each page
   * one, so this is also what bounds a run's time. A page that was asked for may hold some more.
   */
  readonly mostPerRun: number
}

/** The trades of the tokens in the logs of these pools; logs that give none are counted and told. */
export async function readTrades(
  reader: ChainReader,
  { logs, pools: known }: { readonly logs: readonly RpcLog[]; readonly pools: readonly Pool[] },
  {
    entities,
    log,
    signal,
  }: { readonly entities: readonly Token[]; readonly log: Logger; readonly signal: AbortSignal },
): Promise<Candidate<DexTradeRow>[]> {
  const pools = new Map(known.map((pool) => [pool.address, pool]))
  const { swaps, skipped } = toSwaps(logs, pools)
  const swapLogs = swaps.map((swap) => swap.log)
  const timeOf = await readLogTimes(reader.node, swapLogs, signal)
  const senders = await reader.node.senders(
    [...new Set(swapLogs.map(({ transactionHash }) => transactionHash))],
    signal,
  )
  const facts = {
    chain: reader.slug,
    tokens: new Map(entities.map((token) => [token.contractAddress, token])),
    quotes: new Map(reader.chain.quotes.map((quote) => [quote.address, quote])),
    pools,
    timeOf,
    senderOf: (hash: string) => senders.get(hash) ?? '',
    usdAt: await readDollars({ ...reader, pools, timeOf }, swaps, signal),
  }
  const trades = toTrades(swaps, facts, skipped)
  const told = { chain: reader.slug, logs: logs.length, trades: trades.length, skipped: Object.fromEntries(skipped) }
  log.info(told, 'swap logs read')
  return trades
}
