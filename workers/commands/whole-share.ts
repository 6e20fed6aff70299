import { countBuckets, union } from '../../shared/coverage/grid.ts'
import { countCoverage } from '../../shared/coverage/ledger.ts'
import { readWanted, toWantedRuns } from '../../shared/coverage/wanted.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Job } from '../job/define-job.ts'
import { toDueEnd } from '../schedule/look.ts'

/**
 * The share of what is wanted of a dataset and due that is stored, at any step, 0 to 1; what is known to be nothing is not
 * expected. Null while nothing is wanted.
 */
export async function readCompleteShare(
  db: Database,
  job: Job,
  registry: Registry,
  now: number,
): Promise<number | null> {
  const wanted = await readWanted(db, job.dataset)
  const due = toDueEnd(job, now)
  const runs = new Map(job.entities(registry).map(({ key }) => [key, toWantedRuns(wanted, key, job.dataset, due)]))
  const all = union([...runs.values()].flat())
  const [first, last] = [all[0]?.first, all.at(-1)?.last]
  if (first === undefined || last === undefined) return null
  const counts = await countCoverage(db, job.dataset, { first, last })
  let [expected, stored] = [0, 0]
  for (const [key, own] of runs) {
    const count = counts.find(({ entity }) => entity === key)
    const wantedOf = Math.max(0, countBuckets(own) - (count?.nothing ?? 0))
    expected += wantedOf
    // Somebody may have stored more than is wanted.
    stored += Math.min(wantedOf, count?.stored ?? 0)
  }
  return expected === 0 ? null : stored / expected
}
