import { z } from 'zod'
import type { Database } from '../store/store.ts'
import type { LedgerDataset } from './types.ts'

/** The job in `job_state` that has the state of coverage of earlier versions: `unproven` buckets were never read. */
const JOB = 'recount'

const state = z.object({ value: z.string() })

/** Notes that all stored buckets are proven, at a time in Unix milliseconds. */
export function noteProven(db: Database, { name }: Pick<LedgerDataset, 'name'>, now: number): Promise<void> {
  const row = { job: JOB, name, value: 'done', written_at: new Date(now).toISOString() }
  return db.insert({ table: 'job_state', rows: [row] })
}

/** Returns whether stored buckets of a dataset with cursors may never have been read. */
export async function isUnproven(db: Database, { name }: Pick<LedgerDataset, 'name'>): Promise<boolean> {
  const [stored] = await db.rows({
    name: 'recount-state',
    sql: 'SELECT value FROM job_state FINAL WHERE job = {job: String} AND name = {name: String}',
    params: { job: JOB, name },
    schema: state,
  })
  return stored?.value === 'unproven'
}
