import { z } from 'zod'
import type { Database } from '../store/store.ts'
import type { LedgerDataset } from './types.ts'

/**
 * State of the coverage that was stored by earlier versions. `begun` and `done`: it is computed from the rows.
 * `unproven`: it has buckets that were never read.
 */
export type RecountState = 'begun' | 'done' | 'unproven'

const JOB = 'recount'

const state = z.object({ dataset: z.string(), value: z.string() })

/** Returns the states by dataset name. */
export async function readRecountStates(db: Database): Promise<ReadonlyMap<string, string>> {
  const states = await db.rows({
    name: 'recount-states',
    sql: 'SELECT name AS dataset, value FROM job_state FINAL WHERE job = {job: String}',
    params: { job: JOB },
    schema: state,
  })
  return new Map(states.map(({ dataset, value }) => [dataset, value]))
}

/** Stores a state, at a time in Unix milliseconds. */
export function noteRecount(
  db: Database,
  { name }: Pick<LedgerDataset, 'name'>,
  value: RecountState,
  now: number,
): Promise<void> {
  return db.insert({ table: 'job_state', rows: [{ job: JOB, name, value, written_at: new Date(now).toISOString() }] })
}

/** Returns whether stored buckets of a dataset with cursors may never have been read. */
export async function isUnproven(db: Database, { name }: Pick<LedgerDataset, 'name'>): Promise<boolean> {
  return (await readRecountStates(db)).get(name) === ('unproven' satisfies RecountState)
}
