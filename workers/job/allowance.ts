import { z } from 'zod'
import type { JobState } from './state.ts'

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

const remembered = z.object({ slot: z.number(), left: z.number() })

/**
 * The calls of a slot (Unix milliseconds). One that is tried again has those that its earlier tries left, in whatever process
 * they were; `name` is the provider's own.
 */
export async function openSlotAllowance(
  state: JobState,
  { name, slot, perSlot }: { readonly name: string; readonly slot: number; readonly perSlot: number },
): Promise<SlotAllowance> {
  const key = `${name}.allowance`
  const last = remembered.safeParse(JSON.parse((await state.get(key)) ?? 'null')).data
  const allowance = createAllowance(last?.slot === slot ? last.left : perSlot)
  return { ...allowance, save: () => state.save(key, JSON.stringify({ slot, left: allowance.left() })) }
}
