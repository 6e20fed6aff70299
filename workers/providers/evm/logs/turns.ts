import { DataError, toReason } from '../../../../shared/errors.ts'
import { groupBy, toBatches } from '../../../../shared/group-by.ts'
import { type BlockRange, type Contract, type Reading, readStretch } from './contract-logs.ts'
import type { Node, RpcLog } from './node.ts'

/** The last block read, by contract address. */
export type Cursors = ReadonlyMap<string, number>

/** Result of one call. */
export interface Turns {
  readonly logs: readonly RpcLog[]
  /** Cursors of the contracts that were read. */
  readonly cursors: Cursors
  /** Contracts not read to the end of their range, and errors of contracts that the node refused, by address. */
  readonly unfinished: ReadonlySet<string>
  readonly failed: ReadonlyMap<string, DataError>
  /** Number of pages plus number of logs. */
  readonly spent: number
}

/** A log without a row: it is unreadable, or a value needed for the row is unknown. */
export interface Gap {
  readonly log: RpcLog
  readonly reason: DataError
}

/** Turns whose cursors stop before the first gap of each contract, with the reason per held contract. */
export interface HeldTurns extends Turns {
  readonly held: ReadonlyMap<string, DataError>
}

/** Stops the cursors before logs that may become readable. Only the contracts of such logs wait. */
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

/** Removes duplicates, because a node may send a log twice. */
function toDistinct(logs: readonly RpcLog[]): RpcLog[] {
  const toKey = ({ address, blockNumber, logIndex, transactionHash, removed }: RpcLog) =>
    [address, blockNumber, logIndex, transactionHash, removed].join(' ')
  const seen = new Set<string>()
  return logs.filter((log) => {
    const key = toKey(log)
    const isNew = log.fault !== undefined || !seen.has(key)
    seen.add(key)
    return isNew
  })
}

/** Nodes limit the size of a filter. */
const CONTRACTS_PER_GROUP = 100

/** Contracts to read, and the range. */
export interface LogFilter {
  readonly contracts: readonly Contract[]
  /** The first topics of the logs. */
  readonly topics: readonly string[]
  /** Returns the first block to read, by contract address. */
  readonly firstOf: (address: string) => number
  /** The last block to read. */
  readonly to: number
}

/** Groups contracts by the first block to read; each group is read together up to `to`, inclusive. */
export function toGroups({ contracts, topics, firstOf, to }: LogFilter): BlockRange[] {
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
 * Reads each group of contracts in turn, so that no group blocks the others. A group may use an equal share of the
 * remaining `most` (see `readStretch`), and its unused part goes to the next groups. Groups with the fewest blocks come
 * first, because they leave the most. If the node refuses a group, its error is recorded and the others are read.
 * @throws any error that is not a DataError.
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
  let remaining = most
  const inOrder = [...groups].sort((a, b) => b.from - a.from)
  for (const [at, group] of inOrder.entries()) {
    const share = Math.max(1, Math.floor(remaining / (inOrder.length - at)))
    try {
      const reading = await readStretch(node, group, share, signal)
      for (const log of reading.logs) logs.push(log)
      for (const [address, cursor] of toCursors(group, reading, share)) cursors.set(address, cursor)
      if (reading.end < group.to) for (const { address } of group.contracts) unfinished.add(address)
      remaining -= reading.spent
    } catch (error) {
      if (!(error instanceof DataError)) throw error
      for (const { address } of group.contracts) failed.set(address, error)
    }
  }
  return { logs: toDistinct(logs), cursors, unfinished, failed, spent: most - remaining }
}

/**
 * Reads contracts with different first blocks up to the same end. The contracts that are furthest behind are read up to
 * the first block of the next group, and together with it from there, because one call can include all of them.
 * Contracts whose logs the node refuses are recorded as failed and skipped.
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
 * Returns the cursors of a group, usually the same block for all. A contract with more than half of the logs gets a
 * cursor one block earlier: it then forms a separate group, and the others continue without it.
 */
function toCursors({ contracts, to }: BlockRange, { logs, end }: Reading, share: number): [string, number][] {
  const counts = new Map<string, number>()
  if (end < to) for (const { address } of logs) counts.set(address, (counts.get(address) ?? 0) + 1)
  const [busiest] = [...counts].sort(([, a], [, b]) => b - a)
  const behind = busiest !== undefined && contracts.length > 1 && busiest[1] > share / 2 ? busiest[0] : undefined
  return contracts.map(({ address }) => [address, address === behind ? end - 1 : end])
}
