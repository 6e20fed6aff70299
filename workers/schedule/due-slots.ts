import type { Redis } from 'ioredis'
import { OPEN_END } from '../../shared/coverage/notes.ts'
import { EVERYBODY, readWanted, want } from '../../shared/coverage/wanted.ts'
import { DAY_MS, INTERVAL_SECONDS, toBucketStart } from '../../shared/intervals.ts'
import { type DatasetQueues, toSlotJobId } from '../../shared/queue/queues.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { Job } from '../job/define-job.ts'
import { inEnqueueSpan } from '../watch/job-span.ts'
import type { SlotMetrics } from '../watch/slot-metrics.ts'

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

/**
 * Enqueues the current slot, unless it is there. Its id is its time, so any number of schedulers may do this at once; a
 * queue that was emptied has it again at the next look.
 */
export async function enqueueDue({ job, queues }: Scheduled, context: SchedulerContext): Promise<void> {
  const current = toBucketStart(context.now(), job.cadence)
  const jobId = toSlotJobId(job.name, current)
  if ((await queues.live.getJob(jobId)) !== undefined) return
  await wantFrom(job, current, context.db)
  await inEnqueueSpan(job.name, jobId, (options) =>
    queues.live.add(job.name, { kind: 'slot', slot: current }, { jobId, ...options }),
  )
  context.metrics?.slots(job.name, 'enqueued', 1)
  context.log.info({ dataset: job.name, slot: new Date(current).toISOString() }, 'slot enqueued')
}

/**
 * Says that a dataset is collected from its first slot ever on, or from the `firstRunDays` of its job before that. Slots
 * that are missed from then on are found, however long nobody looked.
 */
async function wantFrom({ dataset, cadence, history }: Job, slot: number, db: Database): Promise<void> {
  const wanted = await readWanted(db, dataset)
  if (wanted.some(({ entity, to }) => entity === EVERYBODY && to === OPEN_END)) return
  // After an upgrade also what has passed since: till then the stored rows say that the dataset was collected.
  const upgraded = wanted.filter(({ entity, seconds }) => entity === EVERYBODY && seconds === INTERVAL_SECONDS['7d'])
  const from = Math.min(slot - (history?.firstRunDays ?? 0) * DAY_MS, ...upgraded.map(({ to }) => to))
  await want(db, dataset, [{ entity: EVERYBODY, from, interval: history?.intervals[0] ?? cadence }])
}
