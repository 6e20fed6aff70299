import type { Registry } from 'prom-client'
import { toReason } from '../../shared/errors.ts'
import { type DatasetQueue, readQueueName } from '../../shared/queue/queues.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { createGauge, METRICS } from '../../shared/telemetry/metric-list.ts'
import { createOutageLog } from '../../shared/telemetry/outage-log.ts'

/** Timestamps of a queued job, from which the time in its state is computed. */
interface Times {
  readonly timestamp: number
  readonly processedOn?: number | undefined
  readonly finishedOn?: number | undefined
}

/** The reported states, with the time at which a job entered each (Unix milliseconds). */
const STATES = {
  waiting: ({ timestamp }: Times) => timestamp,
  prioritized: ({ timestamp }: Times) => timestamp,
  delayed: ({ timestamp }: Times) => timestamp,
  active: ({ timestamp, processedOn }: Times) => processedOn ?? timestamp,
  failed: ({ timestamp, finishedOn }: Times) => finishedOn ?? timestamp,
} as const

type State = keyof typeof STATES
const STATE_NAMES = Object.keys(STATES) as State[]

/**
 * Time limit of the read. A scrape waits for the read, and Prometheus drops a scrape that takes longer than its
 * timeout.
 */
const READ_WITHIN_MS = 2_000

interface Depth {
  readonly queue: string
  readonly state: State
  readonly jobs: number
  /** Seconds. */
  readonly oldest: number
}

/**
 * Exports the depth of each queue and the age of its oldest job, read from Redis with each scrape. If Redis does not
 * answer, these metrics are absent and all others are still exported.
 */
export function createQueueMetrics(queues: readonly DatasetQueue[], registry: Registry, log: Logger): void {
  const outage = createOutageLog(log, 'error')
  let underWay: Promise<readonly Depth[]> | undefined
  // A hanging read is shared with the next scrape, so that reads do not accumulate.
  const read = () => {
    underWay ??= readDepths(queues).finally(() => {
      underWay = undefined
    })
    return underWay
  }
  const readOrNone = async (): Promise<readonly Depth[]> => {
    try {
      const depths = await soon(read())
      outage.works('queues')
      return depths
    } catch (error) {
      outage.failed('queues', { reason: toReason(error) }, 'the queues cannot be read: their metrics are absent')
      return []
    }
  }
  createGauge(METRICS.queueJobs, registry, async (gauge) => {
    const depths = await readOrNone()
    gauge.reset()
    for (const { queue, state, jobs } of depths) gauge.set({ ...toLabels(queue), state }, jobs)
  })
  createGauge(METRICS.queueOldest, registry, async (gauge) => {
    const depths = await readOrNone()
    gauge.reset()
    for (const { queue, state, oldest } of depths) gauge.set({ ...toLabels(queue), state }, oldest)
  })
}

/** Dashboards and alerts know the queue class by the label `lane`. */
function toLabels(queue: string) {
  const { dataset, queueClass } = readQueueName(queue)
  return { dataset, lane: queueClass }
}

async function readDepths(queues: readonly DatasetQueue[]): Promise<readonly Depth[]> {
  const depths = queues.map(async (queue) => {
    const counts = await queue.getJobCounts(...STATE_NAMES)
    const states = STATE_NAMES.map(async (state) => {
      return { queue: queue.name, state, jobs: counts[state] ?? 0, oldest: await readOldestAge(queue, state) }
    })
    return Promise.all(states)
  })
  return (await Promise.all(depths)).flat()
}

async function soon<T>(reading: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Redis: no answer within ${READ_WITHIN_MS} ms`)), READ_WITHIN_MS)
  })
  try {
    return await Promise.race([reading, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Each state's list is ordered by the time at which jobs entered it, so the first is the oldest. */
async function readOldestAge(queue: DatasetQueue, state: State): Promise<number> {
  const [oldest] = await queue.getJobs([state], 0, 0, true)
  return oldest === undefined ? 0 : Math.max(0, (Date.now() - STATES[state](oldest)) / 1000)
}
