import { HOUR_MS, INTERVAL_SECONDS, toBucketStart } from '../../shared/intervals.ts'
import { type DatasetQueue, enqueueRanges } from '../../shared/queue/queues.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { Job, Range } from '../job/define-job.ts'
import { planChunks } from './chunks.ts'

interface LateContext {
  readonly registry: Registry
  readonly log: Logger
  readonly now: () => number
}

/** Quotes are renewed about once a minute, so one that is taken later than this was observed after its slot began. */
const PROMPT_MS = 60_000

/**
 * The present must not be stored as the past. So a slot whose cadence has passed is not collected: it is handed over to
 * range jobs in the history lane, or it is missed where the sources have no history at that step.
 * The range is the slot's whole hour as far as it has passed, so that all late slots of an hour become one job.
 *
 * Where rows have the source's own times, a slot that is collected promptly fills the bucket before it, because its
 * observations were made shortly before it began. One that is collected later fills its own bucket, so the bucket
 * before is collected from history.
 * @param history the dataset's history queue, which the ranges go to.
 * @returns whether the slot was late.
 */
export async function handLateSlotOver(
  job: Job,
  slot: number,
  history: DatasetQueue,
  context: LateContext,
): Promise<boolean> {
  const cadenceMs = INTERVAL_SECONDS[job.cadence] * 1000
  const now = context.now()
  const hasHistory = job.history?.intervals.includes(job.cadence) ?? false
  const told = { dataset: job.name, slot: new Date(slot).toISOString() }
  if (now < slot + cadenceMs) {
    const before = { from: slot - cadenceMs, to: slot, interval: job.cadence }
    const isPrompt = now < slot + PROMPT_MS
    if (hasHistory && job.history?.ownTimes && !isPrompt) await enqueueRange(job, before, history, context)
    return false
  }
  if (!hasHistory) {
    context.log.warn(told, 'a slot was missed: it came too late and its sources have no history at that step')
    return true
  }
  const widthMs = Math.max(HOUR_MS, cadenceMs)
  const begin = Math.floor(slot / widthMs) * widthMs
  const to = Math.min(begin + widthMs, toBucketStart(now, job.cadence))
  const jobs = await enqueueRange(job, { from: begin - cadenceMs, to, interval: job.cadence }, history, context)
  context.log.warn({ ...told, jobs }, 'a late slot is collected from history')
  return true
}

async function enqueueRange(job: Job, range: Range, queue: DatasetQueue, context: LateContext): Promise<number> {
  const chunks = planChunks(job, job.entities(context.registry), range)
  await enqueueRanges(queue, chunks)
  return chunks.length
}
