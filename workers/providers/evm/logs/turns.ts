import { toBatches } from '../../../../shared/batches.ts'
import { DataError } from '../../../../shared/errors.ts'
import { type BlockRange, type Contract, type Reading, readStretch } from './contract-logs.ts'
import type { Node, RpcLog } from './node.ts'

/** The last block that was read of each contract, by its address. */
export type Cursors = ReadonlyMap<string, number>

/** What one call came to. */
export interface Turns {
  readonly logs: readonly RpcLog[]
  /** The cursors of the contracts whose turn it was. */
  readonly cursors: Cursors
  /** The contracts that were not read to the end of their range, and those that the node refused, by address. */
  readonly unfinished: ReadonlySet<string>
  readonly failed: ReadonlyMap<string, DataError>
}

/** Nodes bound the size of a filter. */
const CONTRACTS_PER_GROUP = 100

/** What to read of contracts. */
export interface Wanted {
  readonly contracts: readonly Contract[]
  /** The first topics of the logs. */
  readonly topics: readonly string[]
  /** The first block to read of a contract, by its address. */
  readonly firstOf: (address: string) => number
  /** The last block to read. */
  readonly to: number
}

/** Contracts that were read up to the same block, which are read on together up to `to`, inclusive. */
export function toGroups({ contracts, topics, firstOf, to }: Wanted): BlockRange[] {
  const byFirst = new Map<number, Contract[]>()
  for (const contract of contracts) {
    const first = firstOf(contract.address)
    if (first > to) continue
    const same = byFirst.get(first)
    if (same === undefined) byFirst.set(first, [contract])
    else same.push(contract)
  }
  return [...byFirst].flatMap(([from, own]) =>
    toBatches(own, CONTRACTS_PER_GROUP).map((batch) => ({ contracts: batch, topics, from, to })),
  )
}

/**
 * Gives each group of contracts a turn, so that none holds up the others: its stretch of blocks is as long as an equal share
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
      if (reading.end < group.to) for (const { address } of group.contracts) unfinished.add(address)
      left -= reading.spent
    } catch (error) {
      if (!(error instanceof DataError)) throw error
      for (const { address } of group.contracts) failed.set(address, error)
    }
  }
  return { logs, cursors, unfinished, failed }
}

/**
 * All contracts of the group were read up to the same block. One that used up the turn nearly by itself is left a block behind:
 * so it is a group of its own from then on, and the others go on without it.
 */
function toCursors({ contracts, to }: BlockRange, { logs, end }: Reading, share: number): [string, number][] {
  const counts = new Map<string, number>()
  if (end < to) for (const { address } of logs) counts.set(address, (counts.get(address) ?? 0) + 1)
  const [busiest] = [...counts].sort(([, a], [, b]) => b - a)
  const behind = busiest !== undefined && contracts.length > 1 && busiest[1] > share / 2 ? busiest[0] : undefined
  return contracts.map(({ address }) => [address, address === behind ? end - 1 : end])
}
