import { DataError } from '../../../../shared/errors.ts'
import type { Node, RpcLog } from './node.ts'

/** Returns a block's time in Unix seconds, or the error if it is unknown. */
export type TimeOfBlock = (number: number) => number | DataError

/** Reads the times of these blocks from their headers. */
export async function readBlockTimes(
  node: Node,
  numbers: readonly number[],
  signal: AbortSignal,
): Promise<TimeOfBlock> {
  return toTimeOfBlock(node, await fetchTimes(node, numbers, signal))
}

/** Returns the times of the logs' blocks, from the logs if the node includes them, or else from the headers. */
export async function readLogTimes(node: Node, logs: readonly RpcLog[], signal: AbortSignal): Promise<TimeOfBlock> {
  const times = new Map<number, number>()
  for (const { blockNumber, blockTimestamp } of logs)
    if (blockTimestamp !== undefined) times.set(blockNumber, blockTimestamp)
  const withoutTime = logs.map(({ blockNumber }) => blockNumber).filter((number) => !times.has(number))
  return toTimeOfBlock(node, new Map([...(await fetchTimes(node, withoutTime, signal)), ...times]))
}

async function fetchTimes(node: Node, numbers: readonly number[], signal: AbortSignal) {
  const blocks = await node.blocks([...new Set(numbers)], signal)
  return new Map([...blocks].map(([number, one]) => [number, one instanceof DataError ? one : one.timestamp]))
}

const toTimeOfBlock =
  ({ rpc }: Node, times: ReadonlyMap<number, number | DataError>): TimeOfBlock =>
  (number) =>
    times.get(number) ??
    new DataError('provider_malformed', `${rpc.name}: the node did not tell when block ${number} was made`)
