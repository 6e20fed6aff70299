import { z } from 'zod'
import type { GovernorsRow } from '../../../../shared/datasets/governors.ts'
import { DataError } from '../../../../shared/errors.ts'
import type { Governor } from '../../../../shared/registry/entities.ts'
import type { Candidate } from '../../../job/define-job.ts'
import { type JobState, recall } from '../../../job/state.ts'
import { toIso } from '../../answer.ts'
import { readBlockTimes } from '../logs/block-times.ts'
import type { Block, Node } from '../logs/node.ts'
import { type Happened, toProposalId, toTimeOrNull } from './rows.ts'

/** A proposal whose end may still change or is not final. `start` and `end` are in units of its governor's clock. */
const awaited = z.object({
  dao: z.number(),
  space: z.string(),
  proposal: z.string(),
  start: z.number(),
  end: z.number(),
  inSeconds: z.boolean(),
})
const awaitedList = z.array(awaited)
type Awaited = z.infer<typeof awaited>

/**
 * A governor's clock counts blocks, Unix seconds, or its own rounds, which are not times. If the registry does not
 * specify the clock, values from this number on are seconds (the year 2001), and smaller values are blocks: no
 * supported chain has half as many blocks.
 */
const FIRST_SECOND = 1_000_000_000

/** The chain whose blocks the governors of a chain count: on Arbitrum, contracts see the block number of Ethereum. */
const CLOCKS: Readonly<Record<string, string>> = { arbitrum: 'ethereum' }

/** Returns whether a governor's clock counts blocks, according to the registry. */
export const countsBlocks = ({ clock = 'blocks' }: Pick<Governor, 'clock'>): boolean => clock === 'blocks'

export const toClock = (chain: string): string => CLOCKS[chain] ?? chain

/** A node of the chain whose blocks are counted, with its newest final block. */
export interface BlockClock {
  readonly node: Node
  readonly head: Block
}

/** Input of the times of one run on a chain. */
interface TimesInput {
  readonly chain: string
  /** If it is an error, a later run determines the times of proposals that count blocks. */
  readonly clock: BlockClock | DataError
  /** In Unix milliseconds. */
  readonly slot: number
  readonly state: JobState
  /** Returns the time up to which a governor was read, by space, in Unix seconds. */
  readUntil(space: string): number
}

/**
 * Returns the voting periods of proposals that were created or extended, and of those whose end was after the last time
 * read. The time of a future block is an estimate and marked as such, until a later run reads the block.
 */
export async function readTimes(
  happened: readonly Happened[],
  { chain, clock, slot, state, readUntil }: TimesInput,
  signal: AbortSignal,
): Promise<Candidate<GovernorsRow>[]> {
  const key = `awaited.${chain}`
  const before = (await recall(state, key, awaitedList)) ?? []
  const open = new Map(before.map((one) => [one.proposal, one]))
  for (const { governor, event } of happened) {
    if (governor.clock === 'rounds') continue
    const proposal = toProposalId(governor, event.id)
    if (event.kind === 'created' && typeof event.period === 'object') {
      const [start, end] = [Number(event.period.start), Number(event.period.end)]
      const { dao, space } = governor
      open.set(proposal, { dao, space, proposal, start, end, inSeconds: isInSeconds(governor, start) })
    }
    const pending = open.get(proposal)
    if (event.kind === 'extended' && pending !== undefined) open.set(proposal, { ...pending, end: Number(event.end) })
  }
  const isReadable = ({ inSeconds }: Awaited) => inSeconds || !(clock instanceof DataError)
  const all = [...open.values()].filter(isReadable)
  const waiting = [...open.values()].filter((one) => !isReadable(one))
  const timeOf = await readTimesOf(clock, all, signal)
  const timed = all.map((one) => ({ one, starts: timeOf(one, one.start), ends: timeOf(one, one.end) }))
  const remaining = timed.filter(({ one, ends }) => !ends.isExact || ends.at > readUntil(one.space))
  state.set(key, JSON.stringify([...remaining.map(({ one }) => one), ...waiting]))
  return timed.map((each) => toRow(each, slot))
}

const isInSeconds = ({ clock }: Governor, start: number): boolean =>
  clock === undefined ? start >= FIRST_SECOND : clock === 'seconds'

interface Time {
  /** Unix seconds; NaN if the node does not have the time. */
  readonly at: number
  readonly isExact: boolean
}

interface Timed {
  readonly one: Awaited
  readonly starts: Time
  readonly ends: Time
}

function toRow({ one, starts, ends }: Timed, slot: number): Candidate<GovernorsRow> {
  const { dao, space, proposal } = one
  const times = {
    starts_at: toTimeOrNull(starts.at),
    ends_at: toTimeOrNull(ends.at),
    is_estimated: !starts.isExact || !ends.isExact,
  }
  return { dao, space, proposal, kind: 'times', at: toIso(slot), ...times }
}

/** Number of past blocks over which the block rate is measured. */
const PACE_BLOCKS = 10_000

async function readTimesOf(clock: BlockClock | DataError, open: readonly Awaited[], signal: AbortSignal) {
  const numbers = [...new Set(open.flatMap(({ start, end, inSeconds }) => (inSeconds ? [] : [start, end])))]
  const timeOfBlock = clock instanceof DataError ? () => UNKNOWN : await readTimesOfBlocks(clock, numbers, signal)
  return ({ inSeconds }: Awaited, number: number): Time =>
    inSeconds ? { at: number, isExact: true } : timeOfBlock(number)
}

const UNKNOWN: Time = { at: Number.NaN, isExact: false }

async function readTimesOfBlocks(clock: BlockClock, numbers: readonly number[], signal: AbortSignal) {
  const { node, head } = clock
  const past = numbers.filter((number) => number <= head.number)
  const timeOf = await readBlockTimes(node, past, signal)
  const pace = past.length === numbers.length ? 0 : await readPace(clock, signal)
  return (number: number): Time => {
    if (number > head.number) return { at: head.timestamp + (number - head.number) * pace, isExact: false }
    const at = timeOf(number)
    return typeof at === 'number' ? { at, isExact: true } : UNKNOWN
  }
}

/** Returns the seconds per block; NaN if the node does not have the earlier block. */
async function readPace({ node, head }: BlockClock, signal: AbortSignal): Promise<number> {
  const number = Math.max(0, head.number - PACE_BLOCKS)
  const past = (await node.blocks([number], signal)).get(number)
  if (past === undefined || past instanceof DataError) return Number.NaN
  if (past.number === head.number) return 0
  return (head.timestamp - past.timestamp) / (head.number - past.number)
}
