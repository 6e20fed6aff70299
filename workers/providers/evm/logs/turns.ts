import { toBatches } from '../../../../shared/batches.ts'
import { DataError, toReason } from '../../../../shared/errors.ts'
import { groupBy } from '../../../../shared/group-by.ts'
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
  /** What it counts: its pages and its logs. */
  readonly spent: number
}

/** A log that gives no row, as it cannot be read, or something that the row needs is not known. */
export interface Gap {
  readonly log: RpcLog
  readonly reason: DataError
}

/** Turns whose cursors stay before the first gap of each contract, and why each of these contracts has to wait. */
export interface HeldTurns extends Turns {
  readonly held: ReadonlyMap<string, DataError>
}

/** Keeps the cursors from passing what may still be read: only the contracts that have such a log wait for it. */
export function holdCursors(turns: Turns, gaps: readonly Gap[]): HeldTurns {
  const cursors = new Map(turns.cursors)
  const held = new Map<string, DataError>()
  for (const [address, own] of groupBy(gaps, ({ log }) => log.address)) {
    const first = own.reduce((least, { log }) => Math.min(least, log.blockNumber), Number.POSITIVE_INFINITY)
    cursors.set(address, Math.min(cursors.get(address) ?? first - 1, first - 1))
    const [{ reason } = { reason: undefined }] = own
    if (reason === undefined) continue
    const text = `${own.length} of the logs of ${address} cannot be read yet: ${toReason(reason)}`
    held.set(address, new DataError(reason.code, text))
  }
  return { ...turns, cursors, held }
}

/** Each log once: a node may send one twice. */
function toDistinct(logs: readonly RpcLog[]): RpcLog[] {
  const toKey = ({ address, blockNumber, logIndex, transactionHash, removed }: RpcLog) =>
    [address, blockNumber, logIndex, transactionHash, removed].join(' ')
  const known = new Set<string>()
  return logs.filter((log) => {
    const key = toKey(log)
    const isNew = log.fault !== undefined || !known.has(key)
    known.add(key)
    return isNew
  })
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
  return { logs: toDistinct(logs), cursors, unfinished, failed, spent: most - left }
}

/**
 * Reads contracts that begin at different blocks, to the same end: those that are behind are read up to where the next ones
 * begin, and on from there together with them, because a call about all of them is one call. A contract whose logs the node
 * refuses is told, and left behind.
 */
export async function takeTurnsTogether(
  node: Node,
  groups: readonly BlockRange[],
  most: number,
  signal: AbortSignal,
): Promise<Turns> {
  const logs: RpcLog[] = []
  const cursors = new Map<string, number>()
  const failed = new Map<string, DataError>()
  const unfinished = new Set(groups.flatMap(({ contracts }) => contracts.map(({ address }) => address)))
  let spent = 0
  let together: readonly Contract[] = []
  const inOrder = [...groups].sort((a, b) => a.from - b.from)
  for (const [at, group] of inOrder.entries()) {
    if (spent >= most) break
    together = [...together, ...group.contracts]
    const to = Math.min(group.to, (inOrder[at + 1]?.from ?? Number.POSITIVE_INFINITY) - 1)
    if (to < group.from) continue
    const stretch = toBatches(together, CONTRACTS_PER_GROUP).map((contracts) => ({ ...group, contracts, to }))
    const turns = await takeTurns(node, stretch, most - spent, signal)
    for (const log of turns.logs) logs.push(log)
    for (const [address, cursor] of turns.cursors) cursors.set(address, cursor)
    for (const [address, error] of turns.failed) failed.set(address, error)
    spent += turns.spent
    together = together.filter(({ address }) => !turns.failed.has(address) && !turns.unfinished.has(address))
    if (to === group.to) for (const { address } of together) unfinished.delete(address)
  }
  for (const address of failed.keys()) unfinished.delete(address)
  return { logs, cursors, unfinished, failed, spent }
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
