import { toReason } from '../../shared/errors.ts'
import { type Cadence, INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { DatasetQueue } from '../../shared/queue/queues.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { createOutageLog } from '../../shared/telemetry/outage-log.ts'

interface QueueWatchOptions {
  /** The live queues. */
  readonly queues: readonly { readonly queue: DatasetQueue; readonly cadence: Cadence }[]
  readonly log: Logger
  /** Unix milliseconds. */
  readonly now: () => number
}

/** Detects queues that fill up: they have no worker, or too few or too slow ones. */
export interface QueueWatch {
  /** Checks every queue and logs those in which a past slot still waits, and those that have caught up. */
  check(): Promise<void>
}

/** Only live queues are watched: history may wait, but a slot must not wait until the next one is due. */
export function createQueueWatch({ queues, log, now }: QueueWatchOptions): QueueWatch {
  const overdue = new Set<string>()
  const outage = createOutageLog(log, 'error')

  async function checkQueue(queue: DatasetQueue, cadence: Cadence): Promise<void> {
    const [oldest] = await queue.getJobs(['waiting'], 0, 0, true)
    const payload = oldest?.data
    const slot = payload?.kind === 'slot' ? payload.slot : undefined
    const isOverdue = slot !== undefined && slot + INTERVAL_SECONDS[cadence] * 1000 <= now()
    const dataset = queue.name
    if (isOverdue && !overdue.has(dataset)) {
      const fields = { dataset, waiting: await queue.getWaitingCount(), oldest: new Date(slot).toISOString() }
      log.warn(fields, 'the queue fills up: no worker serves it, or too few')
    }
    if (!isOverdue && overdue.has(dataset)) log.info({ dataset }, 'the queue is served again')
    if (isOverdue) overdue.add(dataset)
    else overdue.delete(dataset)
  }
  return {
    check: async () => {
      const looks = queues.map(async ({ queue, cadence }) => {
        try {
          await checkQueue(queue, cadence)
          outage.works(queue.name)
        } catch (error) {
          outage.failed(queue.name, { dataset: queue.name, reason: toReason(error) }, 'the queue cannot be read')
        }
      })
      await Promise.all(looks)
    },
  }
}
