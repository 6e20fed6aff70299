import { z } from 'zod'
import { type Buckets, countBuckets, subtract, toTimes, union } from '../../shared/coverage/grid.ts'
import { addCoverage, type Report } from '../../shared/coverage/ledger.ts'
import { type Note, OPEN_END, writeNotes } from '../../shared/coverage/notes.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import { WHOLE_REGISTRY } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Job } from '../job/define-job.ts'
import type { SchedulerContext } from './due-slots.ts'
import type { Missing } from './missing.ts'

/**
 * Tells of slots that no provider can give any more, once, so that it is known why they are not there. Where the rows are
 * stored after all, as when their worker died before it could say so, that is told instead.
 */
export async function tellLost(job: Job, missing: readonly Missing[], context: SchedulerContext): Promise<void> {
  if (missing.length === 0) return
  const { db, now, log, metrics } = context
  const found = await readStored(job, missing, db)
  await addCoverage(db, job.dataset, found)
  const lost = missing.flatMap(({ entity, runs }) => {
    const own = union(found.filter((report) => report.entity === entity.key))
    const left = runs.flatMap((run) => subtract(run, own))
    return left.length === 0 ? [] : [{ entity, runs: left }]
  })
  await writeNotes(
    db,
    job.dataset,
    lost.flatMap(({ entity, runs }) => runs.map((run) => toNote(job, entity.key, run, now()))),
  )
  const slots = countBuckets(union(lost.flatMap(({ runs }) => runs)))
  metrics?.slots(job.name, 'lost', slots)
  if (slots > 0)
    log.warn({ dataset: job.name, slots, entities: lost.length }, 'slots are lost: their providers have no history')
}

const toNote = (job: Job, entity: number, run: Buckets, now: number): Note => ({
  entity,
  lane: 'history',
  ...toTimes(run, job.dataset.cadence),
  state: 'unserved',
  provider: '',
  reason: 'nobody collected it at the time, and its providers have no history',
  since: now,
  tries: 0,
  nextTry: OPEN_END,
  providers: '',
})

const stored = z.object({ entity: z.number(), bucket: z.int() })

/** The buckets in question that have rows; who gave them is told where only one can have. */
async function readStored(job: Job, missing: readonly Missing[], db: Database): Promise<Report[]> {
  const { dataset, providerNames } = job
  const { table, entity = String(WHOLE_REGISTRY.key), time } = dataset.series
  const cadence = INTERVAL_SECONDS[dataset.cadence]
  const all = missing.flatMap(({ runs }) => runs)
  const [first, last] = [Math.min(...all.map((run) => run.first)), Math.max(...all.map((run) => run.last))]
  const rows = await db.rows({
    name: 'stored-after-all',
    sql: `SELECT DISTINCT ${entity} AS entity, intDiv(toUnixTimestamp(toDateTime(${time}, 'UTC')), {cadence: UInt32}) AS bucket
FROM ${table}
WHERE bucket BETWEEN {first: UInt32} AND {last: UInt32}`,
    params: { cadence, first, last },
    schema: stored,
  })
  const provider = providerNames.length === 1 ? (providerNames[0] ?? '') : 'unknown'
  const isMissing = (row: z.infer<typeof stored>) =>
    missing.some(
      ({ entity: one, runs }) =>
        one.key === row.entity && runs.some((run) => run.first <= row.bucket && row.bucket <= run.last),
    )
  return rows.filter(isMissing).map((row) => ({
    entity: row.entity,
    state: 'stored',
    provider,
    seconds: cadence,
    first: row.bucket,
    last: row.bucket,
  }))
}
