import { z } from 'zod'
import type { GovernorsRow } from '../../../../shared/datasets/governors.ts'
import { DataError } from '../../../../shared/errors.ts'
import type { Governor } from '../../../../shared/registry/entities.ts'
import type { Candidate } from '../../../job/define-job.ts'
import { type JobState, recall } from '../../../job/state.ts'
import { toIso } from '../../answer.ts'
import { readBlockTimes } from '../logs/block-times.ts'
import type { Block, Node } from '../logs/node.ts'
import { type Happened, toProposalId } from './rows.ts'

/** A proposal whose end may still change or is not known for good; `start` and `end` as its governor's clock counts. */
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
 * A governor's clock counts blocks, Unix seconds, or rounds of its own, which are no time. Where the registry does not say
 * what, it is blocks or seconds: from this number on it is seconds, as they were in 2001: no chain that is
 * followed has half as many blocks.
 */
const FIRST_SECOND = 1_000_000_000

/** The blocks that governors of a chain count: on Arbitrum contracts are told the block of Ethereum. */
const CLOCKS: Readonly<Record<string, string>> = { arbitrum: 'ethereum' }

/** Whether a governor's clock counts blocks, as far as is known before it is read. */
export const countsBlocks = ({ clock = 'blocks' }: Pick<Governor, 'clock'>): boolean => clock === 'blocks'

export const toClock = (chain: string): string => CLOCKS[chain] ?? chain

/** A node of the chain whose blocks are counted, and its newest final block. */
export interface BlockClock {
  readonly node: Node
  readonly head: Block
}

/** What times are made of in one run about a chain. */
interface Told {
  readonly chain: string
  /** Where it is not known, the times of proposals that count blocks are told by a later run. */
  readonly clock: BlockClock | DataError
  /** In Unix milliseconds. */
  readonly slot: number
  readonly state: JobState
  /** Up to which time a governor was read, by its space, in Unix seconds. */
  readUntil(space: string): number
}

/**
 * From when to when proposals are voted on: of those that were made or extended, and of those whose end was still ahead of
 * what was read. The time of a block to come is an estimate, and told as such, until a later run knows it.
 */
export async function readTimes(
  happened: readonly Happened[],
  { chain, clock, slot, state, readUntil }: Told,
  signal: AbortSignal,
): Promise<Candidate<GovernorsRow>[]> {
  const key = `awaited.${chain}`
  const before = (await recall(state, key, awaitedList)) ?? []
  const open = new Map(before.map((one) => [one.proposal, one]))
  for (const { governor, event } of happened) {
    if (governor.clock === 'rounds') continue
    const proposal = toProposalId(governor, event.id)
    if (event.kind === 'created') {
      const [start, end] = [Number(event.start), Number(event.end)]
      const { dao, space } = governor
      open.set(proposal, { dao, space, proposal, start, end, inSeconds: isInSeconds(governor, start) })
    }
    const known = open.get(proposal)
    if (event.kind === 'extended' && known !== undefined) open.set(proposal, { ...known, end: Number(event.end) })
  }
  const isReadable = ({ inSeconds }: Awaited) => inSeconds || !(clock instanceof DataError)
  const all = [...open.values()].filter(isReadable)
  const waiting = [...open.values()].filter((one) => !isReadable(one))
  const timeOf = await readTimesOf(clock, all, signal)
  const timed = all.map((one) => ({ one, starts: timeOf(one, one.start), ends: timeOf(one, one.end) }))
  const left = timed.filter(({ one, ends }) => !ends.isKnown || ends.at > readUntil(one.space))
  state.set(key, JSON.stringify([...left.map(({ one }) => one), ...waiting]))
  return timed.map((each) => toRow(each, slot))
}

const isInSeconds = ({ clock }: Governor, start: number): boolean =>
  clock === undefined ? start >= FIRST_SECOND : clock === 'seconds'

interface Time {
  /** In Unix seconds; NaN where the node did not tell it. */
  readonly at: number
  readonly isKnown: boolean
}

interface Timed {
  readonly one: Awaited
  readonly starts: Time
  readonly ends: Time
}

/** In Unix seconds: no governor is older, and the columns' times go up to 2106. A vote until then has no end. */
const EARLIEST = Date.parse('2015-07-30') / 1000
const LATEST = Date.parse('2100-01-01') / 1000

const toText = ({ at }: Time) => (at >= EARLIEST && at < LATEST ? toIso(Math.round(at) * 1000) : null)

function toRow({ one, starts, ends }: Timed, slot: number): Candidate<GovernorsRow> {
  const { dao, space, proposal } = one
  const times = { starts_at: toText(starts), ends_at: toText(ends), is_estimated: !starts.isKnown || !ends.isKnown }
  return { dao, space, proposal, kind: 'times', at: toIso(slot), ...times }
}

/** How far back it is looked how fast blocks come. */
const PACE_BLOCKS = 10_000

async function readTimesOf(clock: BlockClock | DataError, open: readonly Awaited[], signal: AbortSignal) {
  const numbers = [...new Set(open.flatMap(({ start, end, inSeconds }) => (inSeconds ? [] : [start, end])))]
  const timeOfBlock = clock instanceof DataError ? () => UNKNOWN : await readTimesOfBlocks(clock, numbers, signal)
  return ({ inSeconds }: Awaited, number: number): Time =>
    inSeconds ? { at: number, isKnown: true } : timeOfBlock(number)
}

const UNKNOWN: Time = { at: Number.NaN, isKnown: false }

async function readTimesOfBlocks(clock: BlockClock, numbers: readonly number[], signal: AbortSignal) {
  const { node, head } = clock
  const past = numbers.filter((number) => number <= head.number)
  const timeOf = await readBlockTimes(node, past, signal)
  const pace = past.length === numbers.length ? 0 : await readPace(clock, signal)
  return (number: number): Time => {
    if (number > head.number) return { at: head.timestamp + (number - head.number) * pace, isKnown: false }
    const at = timeOf(number)
    return typeof at === 'number' ? { at, isKnown: true } : UNKNOWN
  }
}

/** Seconds from one block to the next; NaN where the node does not have the block that tells it. */
async function readPace({ node, head }: BlockClock, signal: AbortSignal): Promise<number> {
  const number = Math.max(0, head.number - PACE_BLOCKS)
  const past = (await node.blocks([number], signal)).get(number)
  if (past === undefined || past instanceof DataError) return Number.NaN
  if (past.number === head.number) return 0
  return (head.timestamp - past.timestamp) / (head.number - past.number)
}
