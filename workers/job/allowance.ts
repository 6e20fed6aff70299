import { z } from 'zod'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { SlotPiece } from '../../shared/queue/queues.ts'
import { type JobState, recall } from './state.ts'

/** How many pages a run may still ask for; shared by all its entities. */
export interface Allowance {
  /** How many there are, 0 where none is left. */
  left(): number
  /** Takes one page; false when there is none left. */
  take(): boolean
}

export function createAllowance(pages: number): Allowance {
  let left = pages
  return {
    left: () => Math.max(0, left),
    take() {
      left -= 1
      return left >= 0
    },
  }
}

/** The allowance of a slot, which outlives the runs that try it. */
export interface SlotAllowance extends Allowance {
  /** Stores at once what is left: what was asked for was paid for, whatever becomes of the run. */
  save(): Promise<void>
}

/**
 * The calls of one piece: those of all pieces together are the slot's. Where there are fewer calls than pieces, the pieces
 * take turns from slot to slot.
 */
export function toShare(perSlot: number, slot: number, piece: SlotPiece | undefined): number {
  if (piece === undefined) return perSlot
  const { index, of } = piece
  const turn = Math.floor(slot / (INTERVAL_SECONDS['5m'] * 1000))
  // One further after each round: where only every second slot has a call, it is not always the same pieces' turn.
  const place = (index + turn + Math.floor(turn / of)) % of
  return Math.floor(perSlot / of) + (place < perSlot % of ? 1 : 0)
}

const remembered = z.object({ slot: z.number(), left: z.number() })

interface SlotCalls {
  /** The provider's own name. */
  readonly name: string
  /** In Unix milliseconds. */
  readonly slot: number
  /** How many the slot has, or its piece. */
  readonly calls: number
  readonly piece?: SlotPiece | undefined
}

/**
 * The calls of a slot, or those that its piece has of them. One that is tried again has those that its earlier tries left,
 * in whatever process they were.
 */
export async function openSlotAllowance(
  state: JobState,
  { name, slot, calls, piece }: SlotCalls,
): Promise<SlotAllowance> {
  const key = piece === undefined ? `${name}.allowance` : `${name}.allowance.${piece.index}`
  const last = await recall(state, key, remembered)
  const allowance = createAllowance(last?.slot === slot ? last.left : calls)
  return { ...allowance, save: () => state.save(key, JSON.stringify({ slot, left: allowance.left() })) }
}
