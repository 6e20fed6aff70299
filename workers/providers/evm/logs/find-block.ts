import { DataError } from '../../../../shared/errors.ts'
import type { Block, Node } from './node.ts'

/**
 * Finds the first block at or after a time in Unix seconds, or the block after `head` if the time is later. Searches
 * block headers: every other guess is interpolated between the two known ends, the others halve the interval. Uneven
 * block times therefore cost only a few more calls.
 * @throws DataError if the node does not have a block of the search.
 */
export async function findBlockAt(node: Node, seconds: number, head: Block, signal: AbortSignal): Promise<number> {
  if (seconds > head.timestamp) return head.number + 1
  let low: Block = { number: 0, timestamp: 0 }
  let high = head
  for (let turn = 0; high.number - low.number > 1; turn += 1) {
    const width = high.number - low.number
    const share = (seconds - low.timestamp) / Math.max(1, high.timestamp - low.timestamp)
    const offset = turn % 2 === 1 || low.timestamp === 0 ? width / 2 : width * share
    const guess = low.number + Math.min(width - 1, Math.max(1, Math.round(offset)))
    const found = (await node.blocks([guess], signal)).get(guess)
    if (found instanceof DataError) throw found
    if (found === undefined) break
    if (found.timestamp >= seconds) high = found
    else low = found
  }
  return high.number
}
