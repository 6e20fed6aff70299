import type { DexTradeRow } from '../../../../shared/datasets/dex-trades.ts'
import { DataError } from '../../../../shared/errors.ts'
import type { Token } from '../../../../shared/registry/entities.ts'
import type { Logger } from '../../../../shared/telemetry/log.ts'
import type { HttpClient } from '../../../http/client.ts'
import type { Candidate } from '../../../job/define-job.ts'
import { readLogTimes } from '../logs/block-times.ts'
import type { Node, RpcLog } from '../logs/node.ts'
import type { Gap } from '../logs/turns.ts'
import { readDollars } from './dollars.ts'
import type { DexChain } from './exchanges.ts'
import type { Pool } from './pools.ts'
import { toSwaps } from './swaps.ts'
import { toTrades } from './trade-rows.ts'

/** Dependencies for reading the trades of one chain. */
export interface ChainReader {
  readonly slug: string
  readonly chain: DexChain
  readonly node: Node
  readonly prices: HttpClient
  /**
   * Limit of logs plus pages per run, so that results are stored in between. Each log costs a call for its sender and
   * each page costs one, so this also limits a run's time. The last page may exceed the limit.
   */
  readonly mostPerRun: number
}

/** Result of reading pool logs: trades, and logs whose trades are unknown so far. */
export interface ReadTrades {
  readonly trades: Candidate<DexTradeRow>[]
  readonly gaps: readonly Gap[]
}

/** Returns the trades of the tokens in the logs of these pools. Logs without a trade are counted and logged. */
export async function readTrades(
  reader: ChainReader,
  { logs, pools: poolList }: { readonly logs: readonly RpcLog[]; readonly pools: readonly Pool[] },
  {
    entities,
    log,
    signal,
  }: { readonly entities: readonly Token[]; readonly log: Logger; readonly signal: AbortSignal },
): Promise<ReadTrades> {
  const pools = new Map(poolList.map((pool) => [pool.address, pool]))
  const { swaps: all, gaps, skipped } = toSwaps(logs, pools)
  const found = all.map((swap) => swap.log)
  const blockTimeOf = await readLogTimes(reader.node, found, signal)
  const senders = await reader.node.senders(found, signal)
  const [times, takers] = [new Map<number, number>(), new Map<string, string>()]
  const swaps = all.filter(({ log }) => {
    const [time, sender] = [blockTimeOf(log.blockNumber), senders.get(log.transactionHash)]
    const fault = [time, sender].find((one) => one instanceof DataError)
    if (fault instanceof DataError) gaps.push({ log, reason: fault })
    if (typeof time !== 'number' || typeof sender !== 'string') return false
    times.set(log.blockNumber, time)
    takers.set(log.transactionHash, sender)
    return true
  })
  const timeOf = (block: number) => times.get(block) ?? Number.NaN
  const facts = {
    chain: reader.slug,
    tokens: new Map(entities.map((token) => [token.contractAddress, token])),
    quotes: new Map(reader.chain.quotes.map((quote) => [quote.address, quote])),
    pools,
    timeOf,
    senderOf: (hash: string) => takers.get(hash) ?? '',
    usdAt: await readDollars({ ...reader, pools, timeOf }, swaps, signal),
  }
  const trades = toTrades(swaps, facts, skipped)
  const counts = { logs: logs.length, trades: trades.length, unread: gaps.length }
  log.info({ chain: reader.slug, ...counts, skipped: Object.fromEntries(skipped) }, 'swap logs read')
  return { trades, gaps }
}
