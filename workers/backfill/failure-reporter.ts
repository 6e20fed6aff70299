import { type Note, openLedger } from '../../shared/ledger/ledger.ts'
import type { Database } from '../../shared/store/store.ts'
import type { BackfillRequest } from './request.ts'

/**
 * Creates a reporter that prints each new reason for a failed collection once. Reasons recorded before its creation are
 * ignored.
 */
export async function createFailureReporter(
  db: Database,
  { title, job, entities, range }: BackfillRequest,
  say: (line: string) => void,
) {
  const keys = entities.map(({ key }) => key)
  const read = async () =>
    (await openLedger(db, job.dataset).notes(keys, range)).filter(
      ({ queueClass, state }) => queueClass === 'history' && state !== 'coarser',
    )
  const toTry = ({ entity, from, tries, since }: Note) => `${entity} ${from} ${tries} ${since}`
  const before = new Set((await read()).map(toTry))
  const reported = new Set<string>()
  return {
    report: async () => {
      const fresh = (await read()).filter((note) => !before.has(toTry(note)))
      for (const { state, reason } of fresh) {
        if (reported.has(`${state} ${reason}`)) continue
        reported.add(`${state} ${reason}`)
        const of = new Set(fresh.filter((note) => note.reason === reason).map(({ entity }) => entity)).size
        say(`${title}: ${state}, so far for ${of} of ${entities.length}: ${reason}`)
      }
    },
  }
}
