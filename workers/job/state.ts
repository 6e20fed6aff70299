import { z } from 'zod'
import type { Database } from '../../shared/store/clickhouse.ts'

/** What a job remembers between runs. `set` only notes a value; the runner stores it once the run's rows are stored. */
export interface JobState {
  get(name: string): Promise<string | undefined>
  set(name: string, value: string): void
  /**
   * Stores a value at once, whatever becomes of the run: for what was paid for and must not be bought again. It must hold
   * without the run's rows.
   */
  save(name: string, value: string): Promise<void>
}

const stored = z.object({ value: z.string() })

/**
 * A draft of the state for one provider's attempt. `keep` adds it to the run's state; without that, an answer that is
 * discarded leaves nothing behind.
 */
export function draftState(state: JobState): JobState & { keep(): void } {
  const notes = new Map<string, string>()
  return {
    get: async (name) => notes.get(name) ?? (await state.get(name)),
    set: (name, value) => void notes.set(name, value),
    save: async (name, value) => {
      notes.delete(name)
      await state.save(name, value)
    },
    keep: () => {
      for (const [name, value] of notes) state.set(name, value)
    },
  }
}

/** A job's state in the `job_state` table, with the notes of one run. `store` tells whether any value became another. */
export function openState(db: Database, job: string, now: () => number): JobState & { store(): Promise<boolean> } {
  const notes = new Map<string, string>()
  const known = new Map<string, string>()
  async function insert(values: Iterable<readonly [string, string]>): Promise<void> {
    const written_at = new Date(now()).toISOString()
    const rows = [...values].map(([name, value]) => ({ job, name, value, written_at }))
    await db.insert({ table: 'job_state', rows })
  }
  return {
    get: async (name) => {
      const noted = notes.get(name)
      if (noted !== undefined) return noted
      const [row] = await db.rows({
        name: 'job-state',
        sql: 'SELECT value FROM job_state FINAL WHERE job = {job:String} AND name = {name:String}',
        params: { job, name },
        schema: stored,
      })
      if (row !== undefined) known.set(name, row.value)
      return row?.value
    },
    set: (name, value) => void notes.set(name, value),
    save: async (name, value) => {
      notes.delete(name)
      await insert([[name, value]])
    },
    store: async () => {
      const hasMoved = [...notes].some(([name, value]) => known.get(name) !== value)
      if (notes.size > 0) await insert(notes)
      for (const [name, value] of notes) known.set(name, value)
      notes.clear()
      return hasMoved
    },
  }
}
