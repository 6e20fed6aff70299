import { toBatches } from '../../../../shared/batches.ts'
import { DataError } from '../../../../shared/errors.ts'
import type { Node } from './node.ts'
import { type BlockRange, type Reading, readStretch } from './pool-logs.ts'
import type { Pool } from './pools.ts'
import type { RpcLog } from './swaps.ts'

/** The last block that was read of each pool, by its address. */
export type Cursors = ReadonlyMap<string, number>

/** What one call came to. */
export interface Turns {
  readonly logs: readonly RpcLog[]
  /** The cursors of the pools whose turn it was. */
  readonly cursors: Cursors
  /** The pools that were not read to the end of their range, and those that the node refused, by address. */
  readonly unfinished: ReadonlySet<string>
  readonly failed: ReadonlyMap<string, DataError>
}

/** Nodes bound the size of a filter. */
const POOLS_PER_GROUP = 100

/** Pools that were read up to the same block, which are read on together up to `to`, inclusive. */
export function toGroups(pools: readonly Pool[], firstOf: (address: string) => number, to: number): BlockRange[] {
  const byFirst = new Map<number, Pool[]>()
  for (const pool of pools) {
    const first = firstOf(pool.address)
    if (first > to) continue
    byFirst.set(first, [...(byFirst.get(first) ?? []), pool])
  }
  return [...byFirst].flatMap(([from, own]) =>
    toBatches(own, POOLS_PER_GROUP).map((batch) => ({ pools: batch, from, to })),
  )
}

/**
 * Gives each group of pools a turn, so that none holds up the others: its stretch of blocks is as long as an equal share
 * of `most` allows (see `readStretch`), and what it leaves goes to those after it. Those with the fewest blocks to read come first,
 * because they leave most. A group that the node refuses is told, and the others are read.
 * @throws whatever is no DataError.
 */
export async function takeTurns(
  node: Node,
  groups: readonly BlockRange[],
  most: number,
  signal: AbortSignal,
): Promise<Turns> {
  const logs: RpcLog[] = []
  const cursors = new Map<string, number>()
  const unfinished = new Set<string>()
  const failed = new Map<string, DataError>()
  let left = most
  const inOrder = [...groups].sort((a, b) => b.from - a.from)
  for (const [at, group] of inOrder.entries()) {
    const share = Math.max(1, Math.floor(left / (inOrder.length - at)))
    try {
      const reading = await readStretch(node, group, share, signal)
      for (const log of reading.logs) logs.push(log)
      for (const [address, cursor] of toCursors(group, reading, share)) cursors.set(address, cursor)
      if (reading.end < group.to) for (const { address } of group.pools) unfinished.add(address)
      left -= reading.spent
    } catch (error) {
      if (!(error instanceof DataError)) throw error
      for (const { address } of group.pools) failed.set(address, error)
    }
  }
  return { logs, cursors, unfinished, failed }
}

/**
 * All pools of the group were read up to the same block. One that used up the turn nearly by itself is left a block behind:
 * so it is a group of its own from then on, and the others go on without it.
 */
function toCursors({ pools, to }: BlockRange, { logs, end }: Reading, share: number): [string, number][] {
  const counts = new Map<string, number>()
  if (end < to) for (const { address } of logs) counts.set(address, (counts.get(address) ?? 0) + 1)
  const [busiest] = [...counts].sort(([, a], [, b]) => b - a)
  const behind = busiest !== undefined && pools.length > 1 && busiest[1] > share / 2 ? busiest[0] : undefined
  return pools.map(({ address }) => [address, address === behind ? end - 1 : end])
}
