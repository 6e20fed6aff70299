import { DataError } from '../../../../shared/errors.ts'
import type { Block, Node } from './node.ts'

/**
 * The first block at or after a time in Unix seconds, or the block after `head` when the time is later than that. A
 * search by block headers: every other guess is interpolated between the two known ends, the others halve the rest, so
 * that uneven block times cost only a few calls more.
 * @throws DataError for a block on the way that the node does not have.
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
