import { toBatches } from '../../../../shared/batches.ts'
import { createPager } from './log-pages.ts'
import type { Node } from './node.ts'
import type { Pool } from './pools.ts'
import type { RpcLog } from './swaps.ts'

/** Pools of a chain and the blocks in which to read their logs, `from` and `to` both inclusive. */
export interface BlockRange<P extends Pick<Pool, 'address'> = Pool> {
  readonly pools: readonly P[]
  readonly from: number
  readonly to: number
}

/** Nodes bound the size of a filter; 100 pools of a busy hour are some thousand logs. */
const POOLS_PER_CALL = 100

/** The swap logs of the block ranges, in pages that the node accepts. */
export async function readLogs(
  node: Node,
  ranges: readonly BlockRange<Pick<Pool, 'address'>>[],
  signal: AbortSignal,
): Promise<RpcLog[]> {
  const readPages = createPager()
  const logs: RpcLog[][] = []
  for (const { pools, from, to } of ranges) {
    for (const batch of toBatches(pools, POOLS_PER_CALL)) {
      const addresses = batch.map(({ address }) => address)
      logs.push(await readPages(from, to, (first, end, last) => node.swapLogs(addresses, first, end, last, signal)))
    }
  }
  return logs.flat()
}
