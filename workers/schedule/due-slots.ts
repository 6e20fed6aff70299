import type { Redis } from 'ioredis'
import { DAY_MS, END_OF_TIME, INTERVAL_SECONDS, toBucketStart } from '../../shared/intervals.ts'
import { openLedger } from '../../shared/ledger/ledger.ts'
import { type DatasetQueues, type SlotPayload, toSlotJobId } from '../../shared/queue/queues.ts'
import { ALL_ENTITIES } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { Job } from '../job/define-job.ts'
import { inEnqueueSpan } from '../monitoring/job-span.ts'
import type { SlotMetrics } from '../monitoring/slot-metrics.ts'

export interface SchedulerContext {
  readonly db: Database
  readonly redis: Redis
  readonly prefix: string
  readonly registry: Registry
  readonly log: Logger
  readonly now: () => number
  /** Synchronizes the clock with the stores; if undefined, `now` is used unchanged. */
  readonly sync?: () => Promise<void>
  readonly metrics?: SlotMetrics
}

/** A job with its queues. */
export interface Scheduled {
  readonly job: Job
  readonly queues: DatasetQueues
}

/**
 * Enqueues the current slot, or its missing batches. Job ids contain the slot time, so any number of schedulers may run
 * this concurrently. After a queue was emptied, the next tick enqueues the slot again.
 */
export async function enqueueDue({ job, queues }: Scheduled, context: SchedulerContext): Promise<void> {
  const current = toBucketStart(context.now(), job.cadence)
  const planned = planSlot(job, job.entities(context.registry).length, current)
  const queued = await Promise.all(planned.map(({ id }) => queues.live.getJob(id)))
  const due = planned.filter((_, at) => queued[at] === undefined)
  if (due.length === 0) return
  await recordExpectedFrom(job, current, context.db)
  const enqueue = ({ id: jobId, payload }: SlotJob) =>
    inEnqueueSpan(job.name, jobId, (options) => queues.live.add(job.name, payload, { jobId, ...options }))
  await Promise.all(due.map(enqueue))
  if (due.length === planned.length) context.metrics?.slots(job.name, 'enqueued', 1)
  const fields = { dataset: job.name, slot: new Date(current).toISOString() }
  context.log.info(planned.length === 1 ? fields : { ...fields, batches: due.length }, 'slot enqueued')
}

interface SlotJob {
  readonly id: string
  readonly payload: SlotPayload
}

/**
 * Plans the jobs of a slot: one, or several batches. The number of batches is a power of two, so schedulers whose entity
 * counts differ by one plan the same batches.
 */
export function planSlot(
  { name, slotEntities }: Pick<Job, 'name' | 'slotEntities'>,
  entities: number,
  slot: number,
): SlotJob[] {
  if (entities <= slotEntities) return [{ id: toSlotJobId(name, slot), payload: { kind: 'slot', slot } }]
  const of = 2 ** Math.ceil(Math.log2(entities / slotEntities))
  return Array.from({ length: of }, (_, index) => {
    const batch = { index, of }
    return { id: toSlotJobId(name, slot, batch), payload: { kind: 'slot', slot, piece: batch } }
  })
}

/**
 * Records the dataset as expected from its first slot, or from `firstRunDays` before it. Slots missed later are then
 * found, however long no scheduler ran.
 */
async function recordExpectedFrom({ dataset, cadence, history }: Job, slot: number, db: Database): Promise<void> {
  const ledger = openLedger(db, dataset)
  const expected = await ledger.expected()
  if (expected.some(({ entity, to }) => entity === ALL_ENTITIES && to === END_OF_TIME)) return
  // After an upgrade, an expected range with step 7d is the time for which stored rows prove that the dataset was
  // collected. The time since its end is expected, too.
  const upgraded = expected.filter(
    ({ entity, seconds }) => entity === ALL_ENTITIES && seconds === INTERVAL_SECONDS['7d'],
  )
  const from = Math.min(slot - (history?.firstRunDays ?? 0) * DAY_MS, ...upgraded.map(({ to }) => to))
  await ledger.expect([{ entity: ALL_ENTITIES, from, interval: history?.intervals[0] ?? cadence }])
}
