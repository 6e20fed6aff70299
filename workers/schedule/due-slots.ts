import type { Redis } from 'ioredis'
import { DAY_MS, INTERVAL_SECONDS, toBucketStart } from '../../shared/intervals.ts'
import { type DatasetQueues, enqueueRanges, toSlotJobId } from '../../shared/queue/queues.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { readNewest } from '../../shared/store/freshness.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { Job } from '../job/define-job.ts'
import { readRecordedSlot, recordSlot } from '../job/slot-record.ts'
import { inEnqueueSpan } from '../watch/job-span.ts'
import type { SlotMetrics } from '../watch/slot-metrics.ts'
import { planChunks } from './chunks.ts'

export interface SchedulerContext {
  readonly db: Database
  readonly redis: Redis
  readonly prefix: string
  readonly registry: Registry
  readonly log: Logger
  readonly now: () => number
  readonly metrics?: SlotMetrics
}

/** A job with the queues that its slots and its ranges go to. */
export interface Scheduled {
  readonly job: Job
  readonly queues: DatasetQueues
}

/** How far back missed slots are caught up without being asked; beyond it the operator back-fills. */
const CATCH_UP_MS = 31 * DAY_MS

/** The newest slot that was enqueued or, when Redis has no record, the newest in the stored series. */
async function readNewestSlot(context: SchedulerContext, job: Job): Promise<number | undefined> {
  const recorded = await readRecordedSlot(context.redis, context.prefix, job.name)
  if (recorded !== undefined) return recorded
  const newest = await readNewest(context.db, job.dataset)
  return newest === null ? undefined : toBucketStart(newest, job.cadence)
}

/**
 * Enqueues what is due: the current slot, and the missed ones before it as ranges where the job has history. Before the
 * first slot ever come the `firstRunDays` of the job. Job ids are deterministic and the record moves only after
 * everything is enqueued. So any number of schedulers may do this at once, and when one dies half-way the next one
 * repeats it.
 */
export async function enqueueDue({ job, queues }: Scheduled, context: SchedulerContext): Promise<void> {
  const cadenceMs = INTERVAL_SECONDS[job.cadence] * 1000
  const current = toBucketStart(context.now(), job.cadence)
  const recorded = await readNewestSlot(context, job)
  if (recorded === current) return
  const newest = recorded !== undefined && recorded < current ? recorded : undefined
  if (recorded !== undefined && recorded > current + cadenceMs) {
    const told = { dataset: job.name, recorded: new Date(recorded).toISOString() }
    context.log.error(told, 'the record is ahead of the clock: going on with the current slot')
  } else if (recorded !== undefined && recorded > current) return
  if (newest !== undefined && newest + cadenceMs < current)
    await enqueueMissed({ job, queues }, newest, current, context)
  const { firstRunDays } = job.history ?? {}
  if (recorded === undefined && firstRunDays !== undefined)
    await enqueueHistory({ job, queues }, current - firstRunDays * DAY_MS, current, context)
  const jobId = toSlotJobId(job.name, current)
  await inEnqueueSpan(job.name, jobId, (options) =>
    queues.live.add(job.name, { kind: 'slot', slot: current }, { jobId, ...options }),
  )
  await recordSlot(context.redis, context.prefix, job.name, current)
  context.metrics?.slots(job.name, 'enqueued', 1)
  context.log.info({ dataset: job.name, slot: new Date(current).toISOString() }, 'slot enqueued')
}

async function enqueueMissed(
  { job, queues }: Scheduled,
  newest: number,
  current: number,
  context: SchedulerContext,
): Promise<void> {
  // Starts at the newest recorded slot: some of what that slot fills was observed before it began.
  const from = Math.max(newest, current - CATCH_UP_MS)
  const missed = (current - from) / (INTERVAL_SECONDS[job.cadence] * 1000) - 1
  const chunks = await enqueueHistory({ job, queues }, from, current, context)
  context.metrics?.slots(job.name, chunks > 0 ? 'caught_up' : 'lost', missed)
  const told = { dataset: job.name, missed, from: new Date(from).toISOString(), jobs: chunks }
  context.log.warn(told, chunks > 0 ? 'missed slots enqueued' : 'missed slots are lost: this dataset has no history')
}

/** Enqueues [from, to) as ranges of the dataset's finest history; returns how many jobs that are, 0 where it has none. */
async function enqueueHistory(
  { job, queues }: Scheduled,
  from: number,
  to: number,
  context: SchedulerContext,
): Promise<number> {
  const interval = job.history?.intervals[0] ?? job.cadence
  const range = { from: toBucketStart(from, interval), to, interval }
  const chunks = planChunks(job, job.entities(context.registry), range)
  await enqueueRanges(queues.history, chunks)
  return chunks.length
}
