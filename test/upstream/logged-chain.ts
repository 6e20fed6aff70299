import { createHash } from 'node:crypto'
import type { Chain, ChainLog, NodeHabits, PoolQuestion } from './chain.ts'

const SECONDS_PER_BLOCK = 13

export interface LoggedChainOptions {
  readonly logs: readonly ChainLog[]
  /** Known block times in Unix seconds, by number; at least one. Times in between are interpolated. */
  readonly times: ReadonlyMap<number, number>
  readonly pools: readonly (PoolQuestion & { readonly address: string })[]
  /** Blocks without a header in the node. */
  readonly missing?: ReadonlySet<number>
  readonly habits?: NodeHabits
}

/** A chain with exactly the given logs. Senders are derived from the transaction hashes. */
export function createLoggedChain({ logs, times, pools, missing, habits = {} }: LoggedChainOptions): Chain {
  const sorted = [...logs].sort((a, b) => a.blockNumber - b.blockNumber || a.logIndex - b.logIndex)
  const knots = [...times].sort(([a], [b]) => a - b)
  const blockByHash = new Map(sorted.map((log) => [log.transactionHash, log.blockNumber]))
  const timeOf = (block: number) => toTime(knots, block)
  const toKey = ({ factory, tokens, fee }: PoolQuestion) => [factory, ...[...tokens].sort(), fee].join(' ')
  const byQuestion = new Map(pools.map((pool) => [toKey(pool), pool.address]))
  return {
    chainId: 1,
    habits,
    headAt(now) {
      let low = 0
      let high = (knots.at(-1)?.[0] ?? 0) + 100_000
      while (high - low > 1) {
        const middle = (low + high) >> 1
        if (timeOf(middle) * 1000 <= now) low = middle
        else high = middle
      }
      return low
    },
    timeOf: (block) => (missing?.has(block) ? null : timeOf(block)),
    pool: (question) => byQuestion.get(toKey(question)) ?? null,
    allLogs: (from, to) => sorted.filter(({ blockNumber }) => blockNumber >= from && blockNumber <= to),
    logs: (from, to, addresses) =>
      sorted.filter((log) => log.blockNumber >= from && log.blockNumber <= to && addresses.has(log.address)),
    transaction(hash) {
      const blockNumber = blockByHash.get(hash)
      return blockNumber === undefined ? null : { blockNumber, from: toSender(hash) }
    },
    transactionsOf: (block) => {
      const own = sorted.filter(({ blockNumber }) => blockNumber === block)
      return own.map(({ transactionHash, transactionIndex: index }) => ({
        ...{ hash: transactionHash, index, from: toSender(transactionHash) },
      }))
    },
  }
}

const toSender = (hash: string) => `0x${createHash('sha256').update(hash).digest('hex').slice(0, 40)}`

function toTime(knots: readonly (readonly [number, number])[], block: number): number {
  let low = 0
  let high = knots.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((knots[middle]?.[0] ?? 0) <= block) low = middle + 1
    else high = middle
  }
  const [before, after] = [knots[low - 1], knots[low]]
  if (before === undefined) return Math.max(0, (after?.[1] ?? 0) - ((after?.[0] ?? 0) - block) * SECONDS_PER_BLOCK)
  if (after === undefined) return before[1] + (block - before[0]) * SECONDS_PER_BLOCK
  return before[1] + Math.floor(((after[1] - before[1]) * (block - before[0])) / (after[0] - before[0]))
}
