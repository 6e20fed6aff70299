import type { Node, RpcLog } from './node.ts'

/** The times of the logs' blocks in Unix seconds: from the logs where the node tells them there, else from the headers. */
export async function readBlockTimes(
  node: Node,
  logs: readonly RpcLog[],
  signal: AbortSignal,
): Promise<Map<number, number>> {
  const times = new Map<number, number>()
  const untimed = new Set<number>()
  for (const { blockNumber, blockTimestamp } of logs) {
    if (blockTimestamp === undefined) untimed.add(blockNumber)
    else times.set(blockNumber, blockTimestamp)
  }
  const missing = [...untimed].filter((number) => !times.has(number))
  const blocks = await node.blocks(missing, signal)
  for (const [at, number] of missing.entries()) times.set(number, blocks[at]?.timestamp ?? Number.NaN)
  return times
}
