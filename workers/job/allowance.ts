import { z } from 'zod'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { SlotPiece } from '../../shared/queue/queues.ts'
import { type JobState, recall } from './state.ts'

/** Number of pages that a run may still request, shared by all its entities. */
export interface Allowance {
  /** Returns the remaining pages, 0 if none are left. */
  left(): number
  /** Takes one page; returns false if none are left. */
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

/** The allowance of a slot, shared by all attempts of the slot. */
export interface SlotAllowance extends Allowance {
  /** Stores the remaining pages immediately: requests are billed even if the run fails. */
  save(): Promise<void>
}

/**
 * Returns the calls of one piece; the calls of all pieces add up to `perSlot`. If there are fewer calls than pieces,
 * the pieces take turns from slot to slot.
 */
export function toShare(perSlot: number, slot: number, piece: SlotPiece | undefined): number {
  if (piece === undefined) return perSlot
  const { index, of } = piece
  const turn = Math.floor(slot / (INTERVAL_SECONDS['5m'] * 1000))
  // Shifts by one after each round. Without the shift, if only every second slot has a call, the same pieces would
  // always get it.
  const place = (index + turn + Math.floor(turn / of)) % of
  return Math.floor(perSlot / of) + (place < perSlot % of ? 1 : 0)
}

const remembered = z.object({ slot: z.number(), left: z.number() })

interface SlotCalls {
  /** The provider's name. */
  readonly name: string
  /** Unix milliseconds. */
  readonly slot: number
  /** Calls of the slot, or of its piece. */
  readonly calls: number
  readonly piece?: SlotPiece | undefined
}

/**
 * Opens the allowance of a slot or of its piece. A retry gets the calls that earlier attempts left, also attempts of
 * other processes.
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
