import { z } from 'zod'
import type { JobState } from '../../../job/state.ts'
import { type Pool, poolList } from './pools.ts'
import type { Cursors } from './turns.ts'

/** The pools of a chain as they were found last: when (Unix milliseconds) and for which tokens. */
export interface FoundPools {
  readonly foundAt: number
  readonly tokens: readonly string[]
  readonly pools: readonly Pool[]
}

const foundPools = z.object({ foundAt: z.number(), tokens: z.array(z.string()), pools: poolList })
const cursors = z.record(z.string(), z.number())
const addresses = z.array(z.string())

export async function readFoundPools(state: JobState, chain: string): Promise<FoundPools | undefined> {
  const stored = await state.get(`pools.${chain}`)
  return stored === undefined ? undefined : foundPools.parse(JSON.parse(stored))
}

export function noteFoundPools(state: JobState, chain: string, found: FoundPools): void {
  state.set(`pools.${chain}`, JSON.stringify(found))
}

/** How far pools were read: in general under the name of their chain, and in a range under the range's own name. */
export async function readCursors(state: JobState, name: string): Promise<Cursors> {
  const stored = await state.get(`cursors.${name}`)
  return new Map(stored === undefined || stored === '' ? [] : Object.entries(cursors.parse(JSON.parse(stored))))
}

export function noteCursors(state: JobState, name: string, blocks: Cursors): void {
  state.set(`cursors.${name}`, JSON.stringify(Object.fromEntries(blocks)))
}

/** The pools of a chain that were left in the middle of a reading, by address. */
export async function readUnfinished(state: JobState, chain: string): Promise<ReadonlySet<string>> {
  const stored = await state.get(`unfinished.${chain}`)
  return new Set(stored === undefined ? [] : addresses.parse(JSON.parse(stored)))
}

export function noteUnfinished(state: JobState, chain: string, pools: Iterable<string>): void {
  state.set(`unfinished.${chain}`, JSON.stringify([...pools]))
}

/** The state has no way to take a name out; an empty text says that there is nothing under it. */
export function dropCursors(state: JobState, name: string): void {
  state.set(`cursors.${name}`, '')
}
