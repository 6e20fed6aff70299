import { z } from 'zod'
import type { JobState } from '../../../job/state.ts'
import { type Pool, poolList } from './pools.ts'

/** The pools of a chain as they were found last: when (Unix milliseconds) and for which tokens. */
export interface FoundPools {
  readonly foundAt: number
  readonly tokens: readonly string[]
  readonly pools: readonly Pool[]
}

const foundPools = z.object({ foundAt: z.number(), tokens: z.array(z.string()), pools: poolList })
const cursors = z.record(z.string(), z.number())

/** What the job remembers of a chain: its pools, and by pool the last block that was read. */
export async function readFoundPools(state: JobState, chain: string): Promise<FoundPools | undefined> {
  const stored = await state.get(`pools.${chain}`)
  return stored === undefined ? undefined : foundPools.parse(JSON.parse(stored))
}

export function noteFoundPools(state: JobState, chain: string, found: FoundPools): void {
  state.set(`pools.${chain}`, JSON.stringify(found))
}

export async function readCursors(state: JobState, chain: string): Promise<ReadonlyMap<string, number>> {
  const stored = await state.get(`cursors.${chain}`)
  return new Map(stored === undefined ? [] : Object.entries(cursors.parse(JSON.parse(stored))))
}

export function noteCursors(state: JobState, chain: string, blocks: ReadonlyMap<string, number>): void {
  state.set(`cursors.${chain}`, JSON.stringify(Object.fromEntries(blocks)))
}
