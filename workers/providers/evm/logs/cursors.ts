import { z } from 'zod'
import { type JobState, recall } from '../../../job/state.ts'
import type { Contract } from './contract-logs.ts'
import type { Cursors, Turns } from './turns.ts'

const cursors = z.record(z.string(), z.number())
const addresses = z.array(z.string())

/** Read again by the next run, should the node have missed logs of its newest blocks. */
const OVERLAP_BLOCKS = 64

/** Where contracts of a chain are read on. */
export interface Resumption {
  /** The first block to read of a contract, by its address. */
  firstOf(address: string): number
  /** Remembers how far it came; to be called when everything that was read is at hand. */
  note(turns: Turns): void
}

/**
 * Goes on where the contracts of a chain were left. Those that were read to the end begin some blocks before it. Those that
 * never were begin together, where `findStart` says.
 */
export async function resume(
  state: JobState,
  chain: string,
  { contracts, head }: { readonly contracts: readonly Contract[]; readonly head: number },
  findStart: (unread: ReadonlySet<string>) => number | Promise<number>,
): Promise<Resumption> {
  const known = new Map(await readCursors(state, chain))
  const midway = new Set(await readUnfinished(state, chain))
  const unread = new Set(contracts.map(({ address }) => address).filter((address) => !known.has(address)))
  const start = unread.size === 0 ? 0 : await findStart(unread)
  for (const address of unread) {
    known.set(address, start - 1)
    midway.add(address)
  }
  return {
    firstOf: (address) => {
      const cursor = known.get(address) ?? 0
      return midway.has(address) || cursor >= head ? cursor + 1 : Math.max(0, cursor + 1 - OVERLAP_BLOCKS)
    },
    note: (turns) => {
      noteCursors(state, chain, new Map([...known, ...turns.cursors]))
      const untouched = [...midway].filter((address) => !turns.cursors.has(address))
      noteUnfinished(state, chain, new Set([...turns.unfinished, ...untouched]))
    },
  }
}

/** How far contracts were read: in general under the name of their chain, and in a range under the range's own name. */
export async function readCursors(state: JobState, name: string): Promise<Cursors> {
  return new Map(Object.entries((await recall(state, `cursors.${name}`, cursors)) ?? {}))
}

export function noteCursors(state: JobState, name: string, blocks: Cursors): void {
  state.set(`cursors.${name}`, JSON.stringify(Object.fromEntries(blocks)))
}

/** The contracts of a chain that were left in the middle of a reading, by address. */
async function readUnfinished(state: JobState, chain: string): Promise<ReadonlySet<string>> {
  return new Set(await recall(state, `unfinished.${chain}`, addresses))
}

function noteUnfinished(state: JobState, chain: string, contracts: Iterable<string>): void {
  state.set(`unfinished.${chain}`, JSON.stringify([...contracts]))
}

/** The state has no way to take a name out; an empty text says that there is nothing under it. */
export function dropCursors(state: JobState, name: string): void {
  state.set(`cursors.${name}`, '')
}
