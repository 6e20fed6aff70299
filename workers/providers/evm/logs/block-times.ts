import { DataError } from '../../../../shared/errors.ts'
import type { Node, RpcLog } from './node.ts'

/**
 * When a block was made, in Unix seconds.
 * @throws DataError `provider_malformed` that names the block, for one whose time the node did not tell.
 */
export type TimeOfBlock = (number: number) => number

/** The times of these blocks, from their headers. */
export async function readBlockTimes(
  node: Node,
  numbers: readonly number[],
  signal: AbortSignal,
): Promise<TimeOfBlock> {
  return toTimeOfBlock(node, await fetchTimes(node, numbers, signal))
}

/** The times of the logs' blocks: from the logs where the node tells them there, else from the headers. */
export async function readLogTimes(node: Node, logs: readonly RpcLog[], signal: AbortSignal): Promise<TimeOfBlock> {
  const told = new Map<number, number>()
  for (const { blockNumber, blockTimestamp } of logs)
    if (blockTimestamp !== undefined) told.set(blockNumber, blockTimestamp)
  const untold = logs.map(({ blockNumber }) => blockNumber).filter((number) => !told.has(number))
  return toTimeOfBlock(node, new Map([...told, ...(await fetchTimes(node, untold, signal))]))
}

async function fetchTimes(node: Node, numbers: readonly number[], signal: AbortSignal): Promise<Map<number, number>> {
  const blocks = await node.blocks([...new Set(numbers)], signal)
  return new Map(blocks.map(({ number, timestamp }) => [number, timestamp]))
}

const toTimeOfBlock =
  ({ rpc }: Node, times: ReadonlyMap<number, number>): TimeOfBlock =>
  (number) => {
    const time = times.get(number)
    if (time !== undefined) return time
    throw new DataError('provider_malformed', `${rpc.name}: the node did not tell when block ${number} was made`)
  }
