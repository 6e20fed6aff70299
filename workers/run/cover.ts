import { toBuckets } from '../../shared/coverage/grid.ts'
import { addCoverage, readNewestStored } from '../../shared/coverage/ledger.ts'
import { OPEN_END, readNotes, writeNotes } from '../../shared/coverage/notes.ts'
import { readWanted } from '../../shared/coverage/wanted.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Job } from '../job/define-job.ts'
import { toNotes } from './to-notes.ts'
import { type Reported, toReports } from './to-reports.ts'

/**
 * Records the coverage of a run, and notes that explain what is missing. Call only after the rows are stored and all
 * dependent computations are noted: covered entities are not collected again.
 */
export async function cover(db: Database, given: Omit<Reported, 'readSince'>): Promise<void> {
  const { job, payload } = given
  const run = job.resumes && payload.kind === 'slot' ? { ...given, readSince: await findReadSince(db, job) } : given
  const reports = toReports(run)
  await addCoverage(db, job.dataset, reports)
  const keys = run.collected.answers.all().map(({ entity }) => entity.key)
  const about = payload.kind === 'slot' ? { from: payload.slot, to: OPEN_END } : payload
  const before = keys.length === 0 ? [] : await readNotes(db, job.dataset, keys, about)
  await writeNotes(db, job.dataset, toNotes({ ...run, reports, before }))
}

/**
 * Returns a function that finds the first bucket that a slot of a resuming job covers for an entity. If the job has no
 * history, its cursors began at the first wanted time, so a finished reading covers everything. If the job has history,
 * its cursors began at some slot. The slot then covers nothing before the last bucket stored by the same provider.
 */
async function findReadSince(db: Database, { dataset, history }: Job): Promise<NonNullable<Reported['readSince']>> {
  if (history === undefined) {
    const wanted = await readWanted(db, dataset)
    const first = wanted[0] && toBuckets({ from: wanted[0].from, to: OPEN_END }, dataset.cadence)?.first
    return () => first
  }
  const newest = await readNewestStored(db, dataset)
  const toKey = (provider: string, entity: number) => `${entity} ${provider}`
  const lastOf = new Map(newest.map(({ provider, entity, last }) => [toKey(provider, entity), last]))
  return (provider, entity) => lastOf.get(toKey(provider, entity))
}
