import { z } from 'zod'
import { DAY_MS } from '../../../../shared/intervals.ts'
import { type JobState, recall } from '../../../job/state.ts'
import type { Contract } from './contract-logs.ts'
import { type Cursors, type Gap, type HeldTurns, holdCursors, type Turns } from './turns.ts'

const cursors = z.record(z.string(), z.number())
const addresses = z.array(z.string())

/** Read again by the next run, should the node have missed logs of its newest blocks. */
const OVERLAP_BLOCKS = 64

/** Where contracts of a chain are read on. */
export interface Resumption {
  /** The first block to read of a contract, by its address. */
  firstOf(address: string): number
  /** Whether a contract was never read to the end yet. */
  isMidway(address: string): boolean
  /** Remembers how far it came; to be called when everything that was read is at hand. */
  note(turns: Turns): void
}

/**
 * Goes on where the contracts of a chain were left. Those that were read to the end begin some blocks before it. Those that
 * never were begin where `findStart` says.
 */
export async function resume(
  state: JobState,
  chain: string,
  { contracts, head }: { readonly contracts: readonly Contract[]; readonly head: number },
  findStart: (unread: ReadonlySet<string>) => Promise<(address: string) => number>,
): Promise<Resumption> {
  const known = new Map(await readCursors(state, chain))
  const midway = new Set(await readUnfinished(state, chain))
  const unread = new Set(contracts.map(({ address }) => address).filter((address) => !known.has(address)))
  if (unread.size > 0) {
    const startOf = await findStart(unread)
    for (const address of unread) {
      known.set(address, startOf(address) - 1)
      midway.add(address)
    }
  }
  return {
    isMidway: (address) => midway.has(address),
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

const sinceByLog = z.record(z.string(), z.number())

/** What cannot be read for a day is left out for good: the cursors go on, and what was read before is not read for ever. */
const LONGEST_WAIT_MS = DAY_MS

/**
 * Holds the cursors of a chain back for gaps that are known for less than a day at a slot (Unix milliseconds). Those that are
 * left out for good are returned beside.
 */
export async function holdBack(
  state: JobState,
  chain: string,
  { turns, gaps, slot }: { readonly turns: Turns; readonly gaps: readonly Gap[]; readonly slot: number },
): Promise<{ readonly turns: HeldTurns; readonly leftOut: readonly Gap[] }> {
  const name = `gaps.${chain}`
  const before = (await recall(state, name, sinceByLog)) ?? {}
  const toKey = ({ log }: Gap) => `${log.address} ${log.blockNumber}`
  const since = new Map(gaps.map((gap) => [toKey(gap), before[toKey(gap)] ?? slot]))
  const isLeftOut = (gap: Gap) => slot - (since.get(toKey(gap)) ?? slot) > LONGEST_WAIT_MS
  const text = JSON.stringify(Object.fromEntries(since))
  if (text !== JSON.stringify(before)) state.set(name, text)
  return {
    turns: holdCursors(
      turns,
      gaps.filter((gap) => !isLeftOut(gap)),
    ),
    leftOut: gaps.filter(isLeftOut),
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
