import type { ReadPage } from './log-pages.ts'
import type { Node, RpcLog } from './node.ts'

/** A contract that writes logs, by its address in lower case. */
export interface Contract {
  readonly address: string
}

/** Contracts of a chain, the first topics to read, and the blocks: `from` and `to` are both inclusive. */
export interface BlockRange {
  readonly contracts: readonly Contract[]
  readonly topics: readonly string[]
  readonly from: number
  readonly to: number
}

/** Result of reading a range: its logs, and the last block up to which they are complete. */
export interface Reading {
  readonly logs: readonly RpcLog[]
  readonly end: number
  /** Number of pages plus number of logs. */
  readonly spent: number
}

/** Size of the first page, which measures how busy the contracts are. */
const FIRST_PAGE_BLOCKS = 100

/**
 * Reads the logs of a block range from its start, in pages that the node accepts, until the range ends or `most` is
 * used up. Each page and each log counts as one. Logs of a page above the limit are left for the next reading, except
 * that a single block is always read completely.
 */
export async function readStretch(node: Node, range: BlockRange, most: number, signal: AbortSignal): Promise<Reading> {
  const { from, to } = range
  const readPage = toReadPage(node, range, signal)
  const logs: RpcLog[] = []
  let remaining = most
  let at = from
  while (at <= to && (remaining > 0 || at === from)) {
    const fitting = toFitting(logs.length, at - from, remaining)
    const page = await node.pager.read(at, Math.min(to, at + fitting - 1), readPage)
    const { taken, end } = cut(page.found, page.end, Math.max(1, remaining - 1))
    for (const log of taken) logs.push(log)
    remaining -= 1 + taken.length
    at = end + 1
  }
  return { logs, end: at - 1, spent: most - remaining }
}

/** Reads all logs of a block range, page by page. */
export async function* readPages(
  node: Node,
  range: BlockRange,
  signal: AbortSignal,
): AsyncGenerator<readonly RpcLog[]> {
  const { from, to } = range
  const readPage = toReadPage(node, range, signal)
  for (let at = from; at <= to; ) {
    const { found, end } = await node.pager.read(at, to, readPage)
    yield found
    at = end + 1
  }
}

function toReadPage(node: Node, { contracts, topics }: BlockRange, signal: AbortSignal): ReadPage<RpcLog> {
  const filter = { addresses: contracts.map(({ address }) => address), topics }
  return (from, to, last) => node.logs(filter, { from, to, last }, signal)
}

/** Estimates how many blocks contain the remaining number of logs, at the density of the blocks read so far. */
function toFitting(logs: number, blocks: number, remaining: number): number {
  if (blocks === 0) return FIRST_PAGE_BLOCKS
  return logs === 0 ? Number.POSITIVE_INFINITY : Math.max(1, Math.floor((remaining * blocks) / logs))
}

/** Cuts the logs after the last block that fits completely. */
function cut(found: readonly RpcLog[], end: number, most: number): { taken: readonly RpcLog[]; end: number } {
  if (found.length <= most) return { taken: found, end }
  const sorted = [...found].sort((a, b) => a.blockNumber - b.blockNumber)
  const first = sorted[0]?.blockNumber ?? end
  const last = Math.max(first, (sorted[most]?.blockNumber ?? end) - 1)
  return { taken: sorted.filter(({ blockNumber }) => blockNumber <= last), end: Math.min(last, end) }
}
