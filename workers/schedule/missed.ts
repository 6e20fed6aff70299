import { z } from 'zod'
import { type Buckets, subtract, toBucket, toTimes, totalBuckets, union } from '../../shared/coverage/grid.ts'
import { addCoverage, type Note, OPEN_END, type Report, writeNotes } from '../../shared/coverage/ledger.ts'
import { countPossible } from '../../shared/coverage/recount.ts'
import { groupBy, toBatches } from '../../shared/group-by.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import { ENTIRE_REGISTRY } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Job } from '../job/define-job.ts'
import type { SchedulerContext } from './due-slots.ts'
import type { Missing } from './gaps.ts'

/** In this many buckets before now a worker may have stored rows and died after the slot was recorded as missed. */
const RECENT_BUCKETS = 12

/**
 * Records the coverage of recent missing buckets that have rows, regardless of their notes. A worker may have stored
 * the rows after the end of its slot and died before it recorded the coverage.
 */
export async function coverRecentRows(job: Job, missing: readonly Missing[], context: SchedulerContext): Promise<void> {
  const since = toBucket(context.now(), job.dataset.cadence) - RECENT_BUCKETS
  const recent = missing.flatMap(({ entity, runs }) => {
    const own = runs.flatMap(({ first, last }) => (last < since ? [] : [{ first: Math.max(first, since), last }]))
    return own.length === 0 ? [] : [{ entity, runs: own }]
  })
  if (recent.length > 0) await addCoverage(context.db, job.dataset, await readStored(job, recent, context.db))
}

/**
 * Records missed slots that no provider can serve any more, once, so that the reason is known. If the rows are stored
 * (their worker may have died before it recorded the coverage), records the coverage instead.
 */
export async function reportMissed(job: Job, missing: readonly Missing[], context: SchedulerContext): Promise<void> {
  if (missing.length === 0) return
  const { db, now, log, metrics } = context
  const found = await readStored(job, missing, db)
  await addCoverage(db, job.dataset, found)
  const foundOf = groupBy(found, ({ entity }) => entity)
  const missed = missing.flatMap(({ entity, runs }) => {
    const own = union(foundOf.get(entity.key) ?? [])
    const remaining = runs.flatMap((run) => subtract(run, own))
    return remaining.length === 0 ? [] : [{ entity, runs: remaining }]
  })
  await writeNotes(
    db,
    job.dataset,
    missed.flatMap(({ entity, runs }) => runs.map((run) => toNote(job, entity.key, run, now()))),
  )
  const slots = totalBuckets(union(missed.flatMap(({ runs }) => runs)))
  metrics?.slots(job.name, 'lost', slots)
  if (slots > 0)
    log.warn(
      { dataset: job.name, slots, entities: missed.length },
      'missed slots are permanently missing: their providers have no history',
    )
}

const toNote = (job: Job, entity: number, run: Buckets, now: number): Note => ({
  entity,
  lane: 'history',
  ...toTimes(run, job.dataset.cadence),
  state: 'unserved',
  provider: '',
  reason: 'it was not collected in time, and its providers have no history',
  since: now,
  tries: 0,
  nextTry: OPEN_END,
})

const stored = z.object({ entity: z.number(), bucket: z.int() })

/**
 * Returns the missing buckets that have rows. The provider is known only if the job has exactly one. A row that may
 * belong to two buckets counts only if both are missing; otherwise it belongs to the bucket that is not missing.
 */
async function readStored(job: Job, missing: readonly Missing[], db: Database): Promise<Report[]> {
  const [first, ...more] = job.providers
  const provider = first !== undefined && more.length === 0 ? first.name : 'unknown'
  const seconds = INTERVAL_SECONDS[job.dataset.cadence]
  const found: Report[] = []
  for (const batch of toBatches(missing, ENTITIES_PER_BATCH)) {
    const runsOf = new Map(batch.map(({ entity, runs }) => [entity.key, runs]))
    const isMissing = (entity: number, bucket: number) =>
      runsOf.get(entity)?.some((run) => run.first <= bucket && bucket <= run.last) ?? false
    for (const { entity, bucket } of await readBuckets(job, batch, db)) {
      const possible = Array.from({ length: countPossible(job.dataset) }, (_, after) => bucket + after)
      if (possible.every((one) => isMissing(entity, one)))
        found.push({ entity, state: 'stored', provider, seconds, first: bucket, last: bucket })
    }
  }
  return found
}

/** A year of an hourly dataset has 8,760 buckets per entity. */
const ENTITIES_PER_BATCH = 20

async function readBuckets({ dataset }: Job, missing: readonly Missing[], db: Database) {
  const { table, entity = String(ENTIRE_REGISTRY.key), time } = dataset.series
  const all = missing.flatMap(({ runs }) => runs)
  const first = all.reduce((least, run) => Math.min(least, run.first), Number.POSITIVE_INFINITY)
  const last = all.reduce((most, run) => Math.max(most, run.last), 0)
  const { from, to } = toTimes({ first, last }, dataset.cadence)
  return db.rows({
    name: 'stored-after-all',
    sql: `SELECT DISTINCT ${entity} AS entity, intDiv(toUnixTimestamp(toDateTime(${time}, 'UTC')), {cadence: UInt32}) AS bucket
FROM ${table}
WHERE ${time} >= toDateTime({from: UInt32}, 'UTC') AND ${time} < toDateTime({to: UInt32}, 'UTC')
  AND ${entity} IN {keys: Array(UInt64)}`,
    params: {
      cadence: INTERVAL_SECONDS[dataset.cadence],
      from: from / 1000,
      to: to / 1000,
      keys: missing.map(({ entity: one }) => one.key),
    },
    schema: stored,
  })
}
