import { z } from 'zod'
import { type JobState, recall } from '../../../job/state.ts'
import { type Pool, poolList } from './pools.ts'

/** The pools found by the last search on a chain, with its time (Unix milliseconds) and tokens. */
export interface FoundPools {
  readonly foundAt: number
  readonly tokens: readonly string[]
  readonly pools: readonly Pool[]
}

const foundPools = z.object({ foundAt: z.number(), tokens: z.array(z.string()), pools: poolList })

export async function readFoundPools(state: JobState, chain: string): Promise<FoundPools | undefined> {
  return recall(state, `pools.${chain}`, foundPools)
}

export function noteFoundPools(state: JobState, chain: string, found: FoundPools): void {
  state.set(`pools.${chain}`, JSON.stringify(found))
}
