import type { ReadPage } from './log-pages.ts'
import type { Node, RpcLog } from './node.ts'

/** A contract that writes logs, by its address in lower case. */
export interface Contract {
  readonly address: string
}

/** Contracts of a chain, the first topics of what to read of them, and in which blocks: `from` and `to` both inclusive. */
export interface BlockRange {
  readonly contracts: readonly Contract[]
  readonly topics: readonly string[]
  readonly from: number
  readonly to: number
}

/** What was read of a range: its logs, and the last block that they are complete up to. */
export interface Reading {
  readonly logs: readonly RpcLog[]
  readonly end: number
  /** What it counts: its pages and its logs. */
  readonly spent: number
}

/** A first look at the contracts, to see how busy they are before more is asked for than fits. */
const FIRST_LOOK_BLOCKS = 100

/**
 * Reads the logs of a block range from its beginning, in pages that the node accepts, until the range ends or
 * `most` is used up: a page counts one, and so does each log. What a page has beyond that is left for the next
 * reading, but for a single block, which is always read whole.
 */
export async function readStretch(node: Node, range: BlockRange, most: number, signal: AbortSignal): Promise<Reading> {
  const { from, to } = range
  const readPage = toReadPage(node, range, signal)
  const logs: RpcLog[] = []
  let left = most
  let at = from
  while (at <= to && (left > 0 || at === from)) {
    const fitting = toFitting(logs.length, at - from, left)
    const page = await node.pager.read(at, Math.min(to, at + fitting - 1), readPage)
    const { kept, end } = cut(page.found, page.end, Math.max(1, left - 1))
    for (const log of kept) logs.push(log)
    left -= 1 + kept.length
    at = end + 1
  }
  return { logs, end: at - 1, spent: most - left }
}

/** The logs of a block range, all of them, page by page. */
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

/** How many blocks may hold what is left, if they are as busy as those that were read. */
function toFitting(logs: number, blocks: number, left: number): number {
  if (blocks === 0) return FIRST_LOOK_BLOCKS
  return logs === 0 ? Number.POSITIVE_INFINITY : Math.max(1, Math.floor((left * blocks) / logs))
}

/** The logs up to the last block that fits as a whole. */
function cut(found: readonly RpcLog[], end: number, most: number): { kept: readonly RpcLog[]; end: number } {
  if (found.length <= most) return { kept: found, end }
  const sorted = [...found].sort((a, b) => a.blockNumber - b.blockNumber)
  const first = sorted[0]?.blockNumber ?? end
  const last = Math.max(first, (sorted[most]?.blockNumber ?? end) - 1)
  return { kept: sorted.filter(({ blockNumber }) => blockNumber <= last), end: Math.min(last, end) }
}
