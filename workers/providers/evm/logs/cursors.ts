import { z } from 'zod'
import { DAY_MS } from '../../../../shared/intervals.ts'
import { type JobState, recall } from '../../../job/state.ts'
import type { Contract } from './contract-logs.ts'
import { type Cursors, type Gap, type HeldTurns, holdCursors, type Turns } from './turns.ts'

const cursors = z.record(z.string(), z.number())
const addresses = z.array(z.string())
const factsByAddress = z.record(z.string(), z.string())

/** Number of blocks that the next run reads again, in case the node missed logs of its newest blocks. */
const OVERLAP_BLOCKS = 64

/** Start positions for the contracts of a chain. */
export interface Resumption {
  /** Returns the first block to read, by contract address. */
  firstOf(address: string): number
  /** Returns whether a contract was never completely read. */
  isMidway(address: string): boolean
  /** Returns whether this reading is the first one of a contract. */
  isFirst(address: string): boolean
  /** Stores the new positions. Call after all results are available. */
  note(turns: Turns): void
}

interface ToResume {
  readonly contracts: readonly Contract[]
  readonly head: number
  /**
   * The facts besides the logs on which the rows of a contract depend, such as its first block in the registry, as
   * text.
   */
  readonly factsOf?: (address: string) => string
}

/**
 * Resumes reading the contracts of a chain. Completely read contracts start some blocks before their cursor. Contracts
 * without a cursor, and those whose facts changed since they were read, start at the block that `findStart` returns.
 */
export async function resume(
  state: JobState,
  chain: string,
  { contracts, head, factsOf }: ToResume,
  findStart: (unread: ReadonlySet<string>) => Promise<(address: string) => number>,
): Promise<Resumption> {
  const stored = new Map(await readCursors(state, chain))
  const midway = new Set(await readUnfinished(state, chain))
  const readAs = (await recall(state, `facts.${chain}`, factsByAddress)) ?? {}
  const facts = new Map(contracts.map(({ address }) => [address, factsOf?.(address) ?? '']))
  const isChanged = (address: string) => (readAs[address] ?? facts.get(address)) !== facts.get(address)
  const unread = new Set(
    contracts.map(({ address }) => address).filter((address) => !stored.has(address) || isChanged(address)),
  )
  if (unread.size > 0) {
    const startOf = await findStart(unread)
    for (const address of unread) {
      stored.set(address, startOf(address) - 1)
      midway.add(address)
    }
  }
  return {
    isMidway: (address) => midway.has(address),
    isFirst: (address) => unread.has(address),
    firstOf: (address) => {
      const cursor = stored.get(address) ?? 0
      return midway.has(address) || cursor >= head ? cursor + 1 : Math.max(0, cursor + 1 - OVERLAP_BLOCKS)
    },
    note: (turns) => {
      noteCursors(state, chain, new Map([...stored, ...turns.cursors]))
      if (factsOf !== undefined)
        state.set(`facts.${chain}`, JSON.stringify({ ...readAs, ...Object.fromEntries(facts) }))
      const untouched = [...midway].filter((address) => !turns.cursors.has(address))
      noteUnfinished(state, chain, new Set([...turns.unfinished, ...untouched]))
    },
  }
}

/** A contract with its first block in the registry. */
interface Registered extends Contract {
  readonly fromBlock: number
}

/**
 * Resumes reading the contracts of the registry. A contract whose record changed, such as its first block or its
 * decimals, is read again from its first block, because its rows depend on the record.
 */
export function resumeRegistered(
  state: JobState,
  chain: string,
  { contracts, head }: { readonly contracts: readonly Registered[]; readonly head: number },
): Promise<Resumption> {
  const byAddress = new Map(contracts.map((one) => [one.address, one]))
  const factsOf = (address: string) => toFacts(byAddress.get(address) ?? {})
  return resume(
    state,
    chain,
    { contracts, head, factsOf },
    async () => (address) => byAddress.get(address)?.fromBlock ?? 0,
  )
}

/** Returns the members of a record as text, in an order that does not depend on the code. */
const toFacts = (record: object): string => JSON.stringify(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))

const sinceByLog = z.record(z.string(), z.number())

/**
 * Logs that stay unreadable for a day are permanently left out. The cursors then advance, so that the same blocks are
 * not read forever.
 */
const LONGEST_WAIT_MS = DAY_MS

/**
 * Holds back the cursors of contracts with gaps known for less than a day at the slot (Unix milliseconds). Older gaps
 * are returned as `omitted`.
 */
export async function holdBack(
  state: JobState,
  chain: string,
  { turns, gaps, slot }: { readonly turns: Turns; readonly gaps: readonly Gap[]; readonly slot: number },
): Promise<{ readonly turns: HeldTurns; readonly omitted: readonly Gap[] }> {
  const name = `gaps.${chain}`
  const before = (await recall(state, name, sinceByLog)) ?? {}
  const toKey = ({ log }: Gap) => `${log.address} ${log.blockNumber}`
  const since = new Map(gaps.map((gap) => [toKey(gap), before[toKey(gap)] ?? slot]))
  const isOmitted = (gap: Gap) => slot - (since.get(toKey(gap)) ?? slot) > LONGEST_WAIT_MS
  const text = JSON.stringify(Object.fromEntries(since))
  if (text !== JSON.stringify(before)) state.set(name, text)
  return {
    turns: holdCursors(
      turns,
      gaps.filter((gap) => !isOmitted(gap)),
    ),
    omitted: gaps.filter(isOmitted),
  }
}

/** Reads the cursors of contracts: under the name of the chain, or for a range under the range's name. */
export async function readCursors(state: JobState, name: string): Promise<Cursors> {
  return new Map(Object.entries((await recall(state, `cursors.${name}`, cursors)) ?? {}))
}

export function noteCursors(state: JobState, name: string, blocks: Cursors): void {
  state.set(`cursors.${name}`, JSON.stringify(Object.fromEntries(blocks)))
}

/** Reads the addresses of contracts that are not completely read. */
async function readUnfinished(state: JobState, chain: string): Promise<ReadonlySet<string>> {
  return new Set(await recall(state, `unfinished.${chain}`, addresses))
}

function noteUnfinished(state: JobState, chain: string, contracts: Iterable<string>): void {
  state.set(`unfinished.${chain}`, JSON.stringify([...contracts]))
}

/** Clears the cursors. The state cannot delete a name, so an empty text means no value. */
export function dropCursors(state: JobState, name: string): void {
  state.set(`cursors.${name}`, '')
}
