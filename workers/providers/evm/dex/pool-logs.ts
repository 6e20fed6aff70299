import { toBatches } from '../../paging.ts'
import { createPager } from './log-pages.ts'
import type { Node } from './node.ts'
import type { Pool } from './pools.ts'
import type { RpcLog } from './swaps.ts'

/** Pools of a chain to read from one block to another, both inclusive. */
export interface Stretch<P extends Pick<Pool, 'address'> = Pool> {
  readonly pools: readonly P[]
  readonly from: number
  readonly to: number
}

/** Nodes bound the size of a filter; 100 pools of a busy hour are some thousand logs. */
const POOLS_PER_CALL = 100

/** The swap logs of the stretches, in pages that the node accepts. */
export async function readLogs(
  node: Node,
  stretches: readonly Stretch<Pick<Pool, 'address'>>[],
  signal: AbortSignal,
): Promise<RpcLog[]> {
  const readPages = createPager()
  const logs: RpcLog[][] = []
  for (const { pools, from, to } of stretches) {
    for (const batch of toBatches(pools, POOLS_PER_CALL)) {
      const addresses = batch.map(({ address }) => address)
      logs.push(await readPages(from, to, (first, end, last) => node.swapLogs(addresses, first, end, last, signal)))
    }
  }
  return logs.flat()
}
