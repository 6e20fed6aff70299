import { addCoverage, readNewestStored } from '../../shared/coverage/ledger.ts'
import { OPEN_END, readNotes, writeNotes } from '../../shared/coverage/notes.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { toNotes } from './to-notes.ts'
import { type Reported, toReports } from './to-reports.ts'

/**
 * Makes known what a run has of whom, and why it has nothing of the others. Called when the rows are stored and everything
 * that is computed from them is noted: from then on nobody asks for them again.
 */
export async function cover(db: Database, run: Reported): Promise<void> {
  const { job, payload } = run
  const newest = job.resumes && payload.kind === 'slot' ? await readNewestStored(db, job.dataset) : undefined
  const reports = toReports(newest === undefined ? run : { ...run, newest })
  await addCoverage(db, job.dataset, reports)
  const keys = run.collected.answers.all().map(({ entity }) => entity.key)
  const about = payload.kind === 'slot' ? { from: payload.slot, to: OPEN_END } : payload
  const before = keys.length === 0 ? [] : await readNotes(db, job.dataset, keys, about)
  await writeNotes(db, job.dataset, toNotes({ ...run, reports, before }))
}
