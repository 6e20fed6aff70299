import { ANY_STEP, type Buckets, subtractAll, toBuckets, toTimes } from '../../shared/buckets.ts'
import { groupBy } from '../../shared/group-by.ts'
import { DAY_MS, INTERVAL_SECONDS, type Interval } from '../../shared/intervals.ts'
import { type ExpectedRange, type Missing, openLedger } from '../../shared/ledger/ledger.ts'
import { isPoison } from '../../shared/queue/job-notes.ts'
import { type DatasetQueue, enqueueRanges, jobPayload } from '../../shared/queue/queues.ts'
import type { Entity, Job } from '../job/define-job.ts'
import { readProvidersChange } from '../job/state.ts'
import type { Chunk } from './chunks.ts'
import type { SchedulerContext } from './due-slots.ts'
import { type EntityGap, planRepair, toGapInterval, toGaps } from './gaps.ts'

/** Limit of waiting range jobs per dataset; the next run enqueues the rest. */
const MOST_WAITING = 200

/**
 * Finds expected buckets that are neither stored nor known to have no data, and enqueues jobs to collect them from
 * history. Examples: values missing from a slot, data of an outage, and a requested range whose jobs were lost.
 * Excluded are the current slot, ranges with active jobs, and ranges that were tried recently.
 * @returns the number of enqueued jobs.
 */
export async function enqueueMissing(job: Job, queue: DatasetQueue, context: SchedulerContext): Promise<number> {
  // Slots of such a job continue from their cursors, which started at the beginning, so no data is ever missed.
  if (job.resumes && job.history === undefined) return 0
  const ledger = openLedger(context.db, job.dataset)
  const expected = await ledger.expected()
  const [entities, now] = [job.entities(context.registry), context.now()]
  let enqueued = 0
  for (const seconds of toSteps(job, expected)) {
    const ranges = expected.filter((one) => toStep(job, one) === seconds)
    // Without history, data only exists at the step at which it was collected.
    const most = job.history === undefined ? ANY_STEP : seconds
    const missing = await ledger.missingExpected(entities, { ranges, seconds: most, now })
    if (missing.length === 0) continue
    if (job.history === undefined) {
      await reportMissed(job, missing, context)
      continue
    }
    const providersChangedAt = await readProvidersChange(context.db, job.name)
    const open = await ledger.withoutTried(missing, { now, providersChangedAt })
    enqueued += await enqueueRepair(job, open, toInterval(job, seconds), queue, context)
  }
  if (enqueued > 0) context.log.info({ dataset: job.name, jobs: enqueued }, 'enqueued missing data')
  return enqueued
}

/** Returns the expected steps in seconds, finest first. */
const toSteps = (job: Job, expected: readonly ExpectedRange[]): number[] =>
  [...new Set(expected.map((range) => toStep(job, range)))].sort((a, b) => a - b)

const toStep = ({ dataset }: Job, { seconds }: ExpectedRange): number =>
  Math.max(seconds, INTERVAL_SECONDS[dataset.cadence])

/** Records missed slots that no provider can serve any more, and logs their number. */
async function reportMissed(job: Job, missing: readonly Missing[], context: SchedulerContext): Promise<void> {
  const [first, ...more] = job.providers
  const provider = first !== undefined && more.length === 0 ? first.name : 'unknown'
  const ledger = openLedger(context.db, job.dataset)
  const { slots, entities } = await ledger.recordMissed(missing, { provider, now: context.now() })
  context.metrics?.slots(job.name, 'missed', slots)
  const fields = { dataset: job.name, slots, entities }
  if (slots > 0) context.log.warn(fields, 'missed slots are permanently missing: their providers have no history')
}

/**
 * Returns the step to request. An expected step of 7d accepts any step, so the finest one is used, as for the neighbouring
 * data.
 */
function toInterval(job: Job, seconds: number): Interval {
  const intervals = job.history?.intervals.filter((interval) => interval !== '7d') ?? []
  return intervals.find((interval) => INTERVAL_SECONDS[interval] === seconds) ?? toGapInterval(job)
}

async function enqueueRepair(
  job: Job,
  open: readonly Missing[],
  interval: Interval,
  queue: DatasetQueue,
  context: SchedulerContext,
): Promise<number> {
  const due = take(open, await readWaiting(job, queue))
  const gaps = due.flatMap(({ entity, runs }) => toEntityGaps(job, entity, runs))
  const waiting = await queue.getJobCountByTypes('waiting', 'prioritized', 'delayed', 'active')
  const chunks = planRepair(job, gaps, interval)
    .sort((a, b) => b.payload.from - a.payload.from)
    .slice(0, Math.max(0, MOST_WAITING - waiting))
  const fresh = await withoutPoison(job, queue, chunks, context)
  await enqueueRanges(queue, fresh)
  return fresh.length
}

/**
 * Removes finished jobs, so that new jobs can use their ids. A job that crashed its workers stays dead, and its ranges
 * are noted as failed: only an operator can retry it.
 */
async function withoutPoison(
  job: Job,
  queue: DatasetQueue,
  chunks: readonly Chunk[],
  context: SchedulerContext,
): Promise<Chunk[]> {
  const remaining: Chunk[] = []
  for (const chunk of chunks) {
    const ended = await queue.getJob(chunk.id)
    if (ended?.failedReason !== undefined && isPoison(ended)) {
      await reportPoison(job, chunk.payload, ended.failedReason, context)
      continue
    }
    if (ended?.finishedOn !== undefined) await ended.remove()
    remaining.push(chunk)
  }
  return remaining
}

async function reportPoison(job: Job, payload: Chunk['payload'], reason: string, context: SchedulerContext) {
  const { db, registry, now } = context
  const ids = new Set(payload.entities)
  const entities = job.entities(registry).filter(({ id }) => ids.has(id))
  const { from, to } = payload
  const keys = entities.map(({ key }) => key)
  await openLedger(db, job.dataset).recordFailed(keys, { from, to, reason, since: now(), nextTry: now() + DAY_MS })
}

/** Reads the ranges of waiting and active jobs: those for all entities, and those for named ids. */
async function readWaiting(job: Job, queue: DatasetQueue): Promise<(entity: Entity) => readonly Buckets[]> {
  const jobs = await queue.getJobs(['waiting', 'prioritized', 'delayed', 'active'], 0, 5 * MOST_WAITING)
  const everybody: Buckets[] = []
  const named: { id: string; buckets: Buckets }[] = []
  for (const queued of jobs) {
    // A job removed during the read has no data.
    const payload = jobPayload.safeParse(queued?.data).data
    if (payload?.kind !== 'range') continue
    const buckets = toBuckets(payload, job.dataset.cadence)
    if (buckets === undefined) continue
    if (payload.entities === undefined) everybody.push(buckets)
    else for (const id of payload.entities) named.push({ id, buckets })
  }
  const byId = groupBy(named, ({ id }) => id)
  return ({ id }) => [...everybody, ...(byId.get(id)?.map(({ buckets }) => buckets) ?? [])]
}

function take(missing: readonly Missing[], taken: (entity: Entity) => readonly Buckets[]): Missing[] {
  return missing.flatMap(({ entity, runs }) => {
    const remaining = subtractAll(runs, taken(entity))
    return remaining.length === 0 ? [] : [{ entity, runs: remaining }]
  })
}

function toEntityGaps(job: Job, entity: Entity, runs: readonly Buckets[]): EntityGap[] {
  const { cadence } = job.dataset
  const holes = runs.map((run) => toTimes(run, cadence)).map(({ from, to }) => [from, to] as const)
  const range = { from: holes[0]?.[0] ?? 0, to: holes.at(-1)?.[1] ?? 0 }
  return toGaps(holes, cadence, range).map((gap) => ({ ...gap, entity }))
}
