import { groupByExpected, readExpected, toDueEnd, toExpectedRuns } from '../../shared/coverage/expected.ts'
import {
  ANY_STEP,
  type Buckets,
  subtract,
  toBuckets,
  toTimes,
  totalBuckets,
  union,
} from '../../shared/coverage/grid.ts'
import { isMissed, type Note, OPEN_END, readMissing, readNotes } from '../../shared/coverage/ledger.ts'
import { groupBy } from '../../shared/group-by.ts'
import { INTERVAL_SECONDS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Entity, Job } from '../job/define-job.ts'
import type { EntityGap } from '../schedule/gaps.ts'

/**
 * A time range that is wanted, due and missing: not collected yet, failed, or no longer available from any provider.
 */
export interface LedgerGap extends EntityGap {
  readonly state: 'pending' | 'failed' | 'coarser' | 'lost'
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
export async function findLedgerGaps(db: Database, job: Job, registry: Registry, sought: Sought): Promise<LedgerGap[]> {
  const expected = await readExpected(db, job.dataset)
  const until = Math.min(sought.range.to, toDueEnd(job.dataset, sought.now))
  const begin = toBuckets({ from: sought.range.from, to: OPEN_END }, job.dataset.cadence)?.first ?? 0
  const found: LedgerGap[] = []
  for (const group of groupByExpected(job.entities(registry), expected)) {
    const runs = toExpectedRuns(expected, group[0], job.dataset, until)
    const own = runs.flatMap((run) => (run.last < begin ? [] : [{ ...run, first: Math.max(run.first, begin) }]))
    for (const gap of await findOf(db, job, group, own, sought)) found.push(gap)
  }
  return found
}

async function findOf(
  db: Database,
  job: Job,
  entities: readonly Entity[],
  expected: readonly Buckets[],
  { interval }: Sought,
): Promise<LedgerGap[]> {
  const [first, last] = [expected[0], expected.at(-1)]
  if (first === undefined || last === undefined) return []
  const keys = entities.map(({ key }) => key)
  const unknown = await readMissing(db, job.dataset, keys, { expected: expected, seconds: ANY_STEP })
  const step = interval === undefined ? ANY_STEP : INTERVAL_SECONDS[interval]
  const seconds = Math.max(step, INTERVAL_SECONDS[job.dataset.cadence])
  const unmet =
    interval === undefined ? unknown : await readMissing(db, job.dataset, keys, { expected: expected, seconds })
  const within = toTimes({ first: first.first, last: last.last }, job.dataset.cadence)
  const notes = groupBy(await readNotes(db, job.dataset, [...unmet.keys()], within), ({ entity }) => entity)
  return entities.flatMap((entity) => {
    const own = notes.get(entity.key) ?? []
    const [missing, all] = [unknown.get(entity.key) ?? [], unmet.get(entity.key) ?? []]
    const coarser = all.flatMap((run) => subtract(run, missing))
    return [...toGaps(job, entity, missing, own), ...toCoarser(job, entity, coarser, own)].sort(
      (a, b) => a.from - b.from,
    )
  })
}

function toGaps(job: Job, entity: Entity, missing: readonly Buckets[], notes: readonly Note[]): LedgerGap[] {
  const gaps: LedgerGap[] = []
  let remaining = missing
  for (const note of notes) {
    if (note.state === 'coarser') continue
    const buckets = toBuckets(note, job.dataset.cadence)
    if (buckets === undefined) continue
    const unexplained = remaining.flatMap((run) => subtract(run, [buckets]))
    const own = remaining.flatMap((run) => subtract(run, union(unexplained)))
    const state = note.state === 'unserved' ? (isMissed(note) ? 'lost' : undefined) : note.state
    if (state !== undefined) gaps.push(...join(job, entity, own, state, note.reason))
    remaining = unexplained
  }
  return [...gaps, ...join(job, entity, remaining, 'pending', 'it is going to be collected')]
}

function toCoarser(job: Job, entity: Entity, runs: readonly Buckets[], notes: readonly Note[]): LedgerGap[] {
  const note = notes.find(({ state }) => state === 'coarser')
  return join(job, entity, runs, 'coarser', note?.reason ?? 'the provider has only a longer step')
}

function join(
  job: Job,
  entity: Entity,
  runs: readonly Buckets[],
  state: LedgerGap['state'],
  reason: string,
): LedgerGap[] {
  const joined: { first: number; last: number; missing: number }[] = []
  for (const run of runs) {
    const before = joined.at(-1)
    const missing = totalBuckets([run])
    if (before !== undefined && run.first - before.last - 1 <= WITHIN_BUCKETS) {
      before.last = run.last
      before.missing += missing
    } else joined.push({ ...run, missing })
  }
  return joined.map(({ missing, ...run }) => ({ entity, ...toTimes(run, job.dataset.cadence), missing, state, reason }))
}
