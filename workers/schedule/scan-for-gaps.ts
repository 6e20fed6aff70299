import {
  type ExpectedRange,
  groupByExpected,
  readExpected,
  toDueEnd,
  toExpectedRuns,
} from '../../shared/coverage/expected.ts'
import { ANY_STEP, type Buckets, subtract, toBuckets, toTimes, union } from '../../shared/coverage/grid.ts'
import { OPEN_END, readMissing, readNotes, type StoredNote, writeNotes } from '../../shared/coverage/ledger.ts'
import { groupBy } from '../../shared/group-by.ts'
import { DAY_MS, INTERVAL_SECONDS, type Interval, toBucketStart } from '../../shared/intervals.ts'
import { isPoison } from '../../shared/queue/job-notes.ts'
import { type DatasetQueue, enqueueRanges, jobPayload } from '../../shared/queue/queues.ts'
import type { Entity, Job } from '../job/define-job.ts'
import { readProvidersChange } from '../job/state.ts'
import type { Chunk } from './chunks.ts'
import type { SchedulerContext } from './due-slots.ts'
import type { Missing } from './gaps.ts'
import { type EntityGap, planRepair, toGapInterval, toGaps } from './gaps.ts'
import { coverRecentRows, reportMissed } from './missed.ts'

/** Limit of waiting range jobs per dataset; the next run enqueues the rest. */
const MOST_WAITING = 200

/**
 * Finds wanted buckets that are neither stored nor known to have no data, and enqueues jobs to collect them from
 * history. Examples: values missing from a slot, data of an outage, and a requested range whose jobs were lost.
 * Excluded are the current slot, ranges with active jobs, and ranges that were tried recently.
 * @returns the number of enqueued jobs.
 */
export async function enqueueMissing(job: Job, queue: DatasetQueue, context: SchedulerContext): Promise<number> {
  // Slots of such a job continue from their cursors, which started at the beginning, so no data is ever missed.
  if (job.resumes && job.history === undefined) return 0
  const expected = await readExpected(context.db, job.dataset)
  let enqueued = 0
  for (const seconds of toSteps(job, expected)) {
    // Without history, data only exists at the step at which it was collected.
    const missing = await findMissing(job, expected, seconds, job.history === undefined ? ANY_STEP : seconds, context)
    if (missing.length === 0) continue
    if (job.history === undefined) await coverRecentRows(job, missing, context)
    const open = await withoutExplained(job, missing, context)
    if (job.history === undefined) await reportMissed(job, await withoutNotes(job, open, context), context)
    else enqueued += await enqueueRepair(job, open, toInterval(job, seconds), queue, context)
  }
  if (enqueued > 0) context.log.info({ dataset: job.name, jobs: enqueued }, 'enqueued missing data')
  return enqueued
}

/** Returns the wanted steps in seconds, finest first. */
const toSteps = ({ dataset }: Job, expected: readonly ExpectedRange[]): number[] =>
  [...new Set(expected.map(({ seconds }) => Math.max(seconds, INTERVAL_SECONDS[dataset.cadence])))].sort(
    (a, b) => a - b,
  )

/**
 * Returns the step to request. A wanted step of 7d accepts any step, so the finest one is used, as for the neighbouring
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
  const times = { from, to, since: now(), nextTry: now() + DAY_MS }
  const note = { lane: 'history', state: 'failed', provider: '', reason, tries: 1 } as const
  await writeNotes(
    db,
    job.dataset,
    entities.map(({ key }) => ({ entity: key, ...note, ...times })),
  )
}

/** Returns the buckets wanted at step `seconds` that are not covered at a step of at most `most` seconds. */
async function findMissing(
  job: Job,
  expected: readonly ExpectedRange[],
  seconds: number,
  most: number,
  { db, now, registry }: SchedulerContext,
): Promise<Missing[]> {
  const entities = job.entities(registry)
  const ofStep = expected.filter((one) => Math.max(one.seconds, INTERVAL_SECONDS[job.dataset.cadence]) === seconds)
  const found = new Map<number, readonly Buckets[]>()
  for (const group of groupByExpected(entities, ofStep)) {
    const runs = toExpectedRuns(ofStep, group[0], job.dataset, toDueEnd(job.dataset, now()))
    const keys = group.map(({ key }) => key)
    const missing = await readMissing(db, job.dataset, keys, { expected: runs, seconds: most })
    for (const [key, own] of missing) found.set(key, own)
  }
  return entities.flatMap((entity) => {
    const runs = found.get(entity.key)
    return runs === undefined ? [] : [{ entity, runs }]
  })
}

/**
 * Removes buckets that were tried and are not due again. While an entity's slots fail, its range of today would fail,
 * too, and is due only after a slot succeeds. Ranges before today are tried once.
 */
async function withoutExplained(job: Job, missing: readonly Missing[], context: SchedulerContext): Promise<Missing[]> {
  const now = context.now()
  const changedAt = await readProvidersChange(context.db, job.name)
  const today = toBucketStart(now, '1d')
  const isBlocking = (note: StoredNote) =>
    note.lane === 'live' ? note.to === OPEN_END : note.nextTry > now && note.writtenAt >= changedAt
  const toRange = (note: StoredNote) =>
    note.lane === 'live' && note.state === 'failed' ? { ...note, from: Math.max(note.from, today) } : note
  return without(job, missing, context, (note) => (isBlocking(note) ? toRange(note) : undefined))
}

/** Removes all buckets that have a note. */
const withoutNotes = (job: Job, missing: readonly Missing[], context: SchedulerContext) =>
  without(job, missing, context, (note) => note)

async function without(
  job: Job,
  missing: readonly Missing[],
  context: SchedulerContext,
  toExplained: (note: StoredNote) => { from: number; to: number } | undefined,
): Promise<Missing[]> {
  const keys = missing.map(({ entity }) => entity.key)
  const notes = await readNotes(context.db, job.dataset, keys, { from: 0, to: OPEN_END })
  const explained: { entity: number; buckets: Buckets }[] = []
  for (const note of notes) {
    const range = toExplained(note)
    const buckets = range === undefined ? undefined : toBuckets(range, job.dataset.cadence)
    if (buckets !== undefined) explained.push({ entity: note.entity, buckets })
  }
  const byEntity = groupBy(explained, ({ entity }) => entity)
  return take(missing, ({ key }) => byEntity.get(key)?.map(({ buckets }) => buckets) ?? [])
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
    const removed = union(taken(entity))
    const remaining = runs.flatMap((run) => subtract(run, removed))
    return remaining.length === 0 ? [] : [{ entity, runs: remaining }]
  })
}

function toEntityGaps(job: Job, entity: Entity, runs: readonly Buckets[]): EntityGap[] {
  const { cadence } = job.dataset
  const holes = runs.map((run) => toTimes(run, cadence)).map(({ from, to }) => [from, to] as const)
  const range = { from: holes[0]?.[0] ?? 0, to: holes.at(-1)?.[1] ?? 0 }
  return toGaps(holes, cadence, range).map((gap) => ({ ...gap, entity }))
}
