import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import type { Entity, Run } from './define-job.ts'
import { type JobState, recall } from './state.ts'

/**
 * Counts a provider's responses per entity of a slot, over all attempts of the slot. A response is billed even if it is
 * unusable.
 */
export interface SlotAnswers {
  of(entity: Entity): number
  /** Runs `ask` and counts its response, including a malformed one. Requests without a response are not billed. */
  count<Answer>(entity: Entity, ask: () => Promise<Answer>): Promise<Answer>
  /** Stores the counts immediately: a run whose rows are rejected stores nothing else. */
  save(): Promise<void>
}

const remembered = z.object({ slot: z.number(), counts: z.record(z.string(), z.number()) })

/** Opens the counts of a slot (Unix milliseconds), or of its piece. */
export async function openSlotAnswers(
  state: JobState,
  provider: string,
  { slot, piece }: Pick<Run<unknown, Entity>, 'slot' | 'piece'>,
): Promise<SlotAnswers> {
  const key = piece === undefined ? `${provider}.answers` : `${provider}.answers.${piece.index}`
  const last = await recall(state, key, remembered)
  const counts = new Map(last?.slot === slot ? Object.entries(last.counts) : [])
  const of = ({ id }: Entity) => counts.get(id) ?? 0
  const add = (entity: Entity) => void counts.set(entity.id, of(entity) + 1)
  return {
    of,
    async count(entity, ask) {
      try {
        const answer = await ask()
        add(entity)
        return answer
      } catch (error) {
        if (error instanceof DataError && error.code === 'provider_malformed') add(entity)
        throw error
      }
    },
    save: () => state.save(key, JSON.stringify({ slot, counts: Object.fromEntries(counts) })),
  }
}
