import { INTERVAL_SECONDS, toBucketStart } from '../shared/intervals.ts'
import type { Logger } from '../shared/log.ts'
import { type DatasetQueue, RANGE_PRIORITY } from '../shared/queues.ts'
import type { Registry } from '../shared/registry/registry.ts'
import { planChunks } from './chunks.ts'
import type { Job } from './define.ts'

interface LateContext {
  readonly registry: Registry
  readonly log: Logger
  readonly now: () => number
}

const HOUR_MS = 3_600_000

/**
 * What is true now must not be stored under another time: a slot whose cadence has passed is handed over to range jobs,
 * which wait behind the slots that are due, or is missed where the sources have no history at that step. The range is
 * the slot's whole hour as far as it has passed, so that the late slots of an hour become one job.
 * @returns whether the slot was late.
 */
export async function handLateSlotOver(
  job: Job,
  slot: number,
  queue: DatasetQueue,
  context: LateContext,
): Promise<boolean> {
  const cadenceMs = INTERVAL_SECONDS[job.cadence] * 1000
  const now = context.now()
  if (now < slot + cadenceMs) return false
  const widthMs = Math.max(HOUR_MS, cadenceMs)
  const begin = Math.floor(slot / widthMs) * widthMs
  const to = Math.min(begin + widthMs, toBucketStart(now, job.cadence))
  const told = { dataset: job.name, slot: new Date(slot).toISOString() }
  if (!job.history?.intervals.includes(job.cadence)) {
    context.log.warn(told, 'a slot was missed: it came too late and its sources have no history at that step')
    return true
  }
  // A quote taken on time was observed shortly before its slot, so the bucket before is this slot's to fill as well.
  const range = { from: begin - cadenceMs, to, interval: job.cadence }
  const chunks = planChunks(job, job.entities(context.registry), range)
  await queue.addBulk(
    chunks.map(({ id, payload }) => ({ name: job.name, data: payload, opts: { jobId: id, priority: RANGE_PRIORITY } })),
  )
  context.log.warn({ ...told, jobs: chunks.length }, 'a late slot is collected from history')
  return true
}
