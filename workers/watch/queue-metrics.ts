import type { Registry } from 'prom-client'
import { toReason } from '../../shared/errors.ts'
import { type DatasetQueue, readQueueName } from '../../shared/queue/queues.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { createGauge, METRICS } from '../../shared/telemetry/metric-list.ts'
import { createOutageLog } from '../../shared/telemetry/outage-log.ts'

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

/** Whoever asks for the metrics waits with them, and gives all of them up in a few seconds. */
const READ_WITHIN_MS = 2_000

interface Depth {
  readonly queue: string
  readonly state: State
  readonly jobs: number
  /** Seconds. */
  readonly oldest: number
}

/**
 * Depth of each queue and age of its oldest job, read from Redis whenever the metrics are. While Redis does not tell
 * them they are absent, and all other metrics are there.
 */
export function createQueueMetrics(queues: readonly DatasetQueue[], registry: Registry, log: Logger): void {
  const outage = createOutageLog(log, 'error')
  let underWay: Promise<readonly Depth[]> | undefined
  // A reading that hangs is waited for by whoever asks next, so that they do not pile up.
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
    for (const { queue, state, jobs } of depths) gauge.set({ ...readQueueName(queue), state }, jobs)
  })
  createGauge(METRICS.queueOldest, registry, async (gauge) => {
    const depths = await readOrNone()
    gauge.reset()
    for (const { queue, state, oldest } of depths) gauge.set({ ...readQueueName(queue), state }, oldest)
  })
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

/** Each state's list is ordered by when jobs came into it, so that its first is the oldest. */
async function readOldestAge(queue: DatasetQueue, state: State): Promise<number> {
  const [oldest] = await queue.getJobs([state], 0, 0, true)
  return oldest === undefined ? 0 : Math.max(0, (Date.now() - STATES[state](oldest)) / 1000)
}
