import type { Registry } from 'prom-client'
import { type DatasetQueue, readQueueName } from '../../shared/queue/queues.ts'
import { createGauge, METRICS } from '../../shared/telemetry/metric-list.ts'

/** What is read of a queued job to tell how long it has been in its state. */
interface Times {
  readonly timestamp: number
  readonly processedOn?: number | undefined
  readonly finishedOn?: number | undefined
}

/** The states that are told, and since when a job is in each of them, in Unix milliseconds. */
const STATES = {
  waiting: ({ timestamp }: Times) => timestamp,
  prioritized: ({ timestamp }: Times) => timestamp,
  delayed: ({ timestamp }: Times) => timestamp,
  active: ({ timestamp, processedOn }: Times) => processedOn ?? timestamp,
  failed: ({ timestamp, finishedOn }: Times) => finishedOn ?? timestamp,
} as const

type State = keyof typeof STATES
const STATE_NAMES = Object.keys(STATES) as State[]

/** Depth of each queue and age of its oldest job, read from Redis whenever the metrics are. */
export function createQueueMetrics(queues: readonly DatasetQueue[], registry: Registry): void {
  createGauge(METRICS.queueJobs, registry, async (gauge) => {
    for (const queue of queues) {
      const counts = await queue.getJobCounts(...STATE_NAMES)
      for (const state of STATE_NAMES) gauge.set({ ...readQueueName(queue.name), state }, counts[state] ?? 0)
    }
  })
  createGauge(METRICS.queueOldest, registry, async (gauge) => {
    for (const queue of queues) {
      for (const state of STATE_NAMES) {
        gauge.set({ ...readQueueName(queue.name), state }, await readOldestAge(queue, state))
      }
    }
  })
}

/** Each state's list is ordered by when jobs came into it, so that its first is the oldest. */
async function readOldestAge(queue: DatasetQueue, state: State): Promise<number> {
  const [oldest] = await queue.getJobs([state], 0, 0, true)
  return oldest === undefined ? 0 : Math.max(0, (Date.now() - STATES[state](oldest)) / 1000)
}
