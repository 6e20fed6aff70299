import { ANY_STEP, toStepSeconds, toTimes, totalBuckets } from '../../shared/buckets.ts'
import { groupBy } from '../../shared/group-by.ts'
import type { Interval, TimeRange } from '../../shared/intervals.ts'
import { type ExplainedMissing, openLedger } from '../../shared/ledger/ledger.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Job } from '../job/define-job.ts'
import type { EntityGap } from '../schedule/gaps.ts'

/**
 * A time range that is expected, due and missing: not collected yet, failed, or no longer available from any provider.
 */
export interface LedgerGap extends EntityGap {
  readonly state: 'pending' | 'failed' | 'coarser' | 'missed'
  readonly reason: string
}

interface Sought {
  readonly range: TimeRange
  /** The step required of the data; undefined accepts any step. */
  readonly interval: Interval | undefined
  readonly now: number
}

/** Gaps of the same state and reason with at most this many buckets between them are reported as one. */
const WITHIN_BUCKETS = 12

/**
 * Returns the missing time ranges of a dataset according to its coverage. Ranges without data and ranges that no
 * provider can serve are excluded. Permanently missing ranges, which were not collected in time, are included.
 */
export async function findLedgerGaps(
  db: Database,
  job: Job,
  registry: Registry,
  { range, interval, now }: Sought,
): Promise<LedgerGap[]> {
  const seconds = interval === undefined ? ANY_STEP : toStepSeconds(interval, job.dataset.cadence)
  const ledger = openLedger(db, job.dataset)
  const missing = await ledger.explainMissing(job.entities(registry), { within: range, seconds, now })
  return [...groupBy(missing, ({ entity }) => entity).values()].flatMap((own) => {
    const alike = groupBy(own, ({ state, reason }) => `${state} ${reason}`)
    return [...alike.values()].flatMap((runs) => join(job, runs)).sort((a, b) => a.from - b.from)
  })
}

/** Joins neighbouring runs of an entity with the same state and reason. */
function join(job: Job, runs: readonly ExplainedMissing[]): LedgerGap[] {
  const joined: { run: ExplainedMissing; last: number; missing: number }[] = []
  for (const run of runs) {
    const before = joined.at(-1)
    const missing = totalBuckets([run])
    if (before !== undefined && run.first - before.last - 1 <= WITHIN_BUCKETS) {
      before.last = run.last
      before.missing += missing
    } else joined.push({ run, last: run.last, missing })
  }
  return joined.flatMap(({ run: { entity, first, reason, ...run }, last, missing }) => {
    // Data that no provider has is not a gap.
    if (run.state === 'unserved') return []
    return [{ entity, ...toTimes({ first, last }, job.dataset.cadence), missing, state: run.state, reason }]
  })
}
