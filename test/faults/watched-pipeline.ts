import { pino } from 'pino'
import { datasets } from '../../shared/datasets/list.ts'
import { createDatabase } from '../../shared/store/store.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { createHttpClients } from '../../workers/http/client.ts'
import type { Job } from '../../workers/job/define-job.ts'
import { createQueueMetrics } from '../../workers/monitoring/queue-metrics.ts'
import { createQueueWatch } from '../../workers/monitoring/queue-watch.ts'
import { createSlotMetrics } from '../../workers/monitoring/slot-metrics.ts'
import { createWatchdog } from '../../workers/monitoring/watchdog.ts'
import { createWorkerMetrics } from '../../workers/monitoring/worker-metrics.ts'
import { createRunner } from '../../workers/run/runner.ts'
import { type Scheduler, startScheduler } from '../../workers/schedule/scheduler.ts'
import { createHandFeed, startApi } from '../support/api.ts'
import { createPipeline, type Pipeline, type PipelineOptions } from '../support/pipeline.ts'

/** A log line, with the members that the tests use. */
export interface Line {
  readonly level: number
  readonly msg: string
  readonly dataset?: string
  readonly provider?: string
  readonly reason?: string
  readonly waiting?: number
}

interface Status {
  readonly state: string
  readonly lagSeconds: number | null
  readonly note?: string
}

/** One dataset from the scheduler to the API, with all its monitoring, on a clock that a test moves. */
export interface WatchedPipeline extends Pipeline {
  readonly scheduler: Scheduler
  /** Starts a worker of the dataset. */
  serve(): ReturnType<typeof createRunner>
  /** The checks of one tick, in schedulers and in workers. */
  watch(): Promise<void>
  /** Log lines of level warning or error since the last call. */
  takeWarnings(): Line[]
  /** Value of a metric, by its name and some of its labels. */
  metric(name: string, labels: Readonly<Record<string, string>>): Promise<number | undefined>
  /** The `/data/status` record of the dataset. */
  status(): Promise<Status>
}

export async function createWatchedPipeline(
  job: Job,
  options: { now: number } & Pick<PipelineOptions, 'settings' | 'leavesDatabase'>,
): Promise<WatchedPipeline> {
  const pipeline = await createPipeline(options)
  const { config, registry, clock, context } = pipeline
  const lines: Line[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const now = () => clock.now
  const metrics = createMetrics('test')
  const workerMetrics = createWorkerMetrics(metrics)
  const queues = pipeline.queues(job.name)
  createQueueMetrics([queues.live, queues.history], metrics, log)
  const slotMetrics = createSlotMetrics([job.name], metrics)
  const { redis, db } = context
  const { prefix } = config.redis
  const scheduler = startScheduler([{ job, queues }], { db, redis, prefix, registry, log, now, metrics: slotMetrics })
  const watched = datasets.filter(({ name }) => name === job.name)
  const watchdog = createWatchdog({
    db,
    redis,
    prefix,
    datasets: watched,
    records: registry,
    registry: metrics,
    log,
    now,
  })
  const queueWatch = createQueueWatch({ queues: [{ queue: queues.live, cadence: job.cadence }], log, now })
  const readDb = createDatabase(config.clickhouse, 'read')
  const changeFeed = createHandFeed()
  const api = await startApi({ config, db: readDb, registry, changeFeed, now })
  const http = createHttpClients({ log, observe: workerMetrics.call, backoffMs: 1 })
  const runners: ReturnType<typeof createRunner>[] = []
  return {
    ...pipeline,
    scheduler,
    serve: () => {
      const runner = createRunner(job, { ...context, http, log, metrics: workerMetrics })
      runners.push(runner)
      return runner
    },
    watch: async () => {
      await watchdog.check()
      await queueWatch.check()
    },
    takeWarnings: () => lines.splice(0).filter(({ level }) => level >= 40),
    metric: async (name, labels) => {
      const found = (await metrics.getMetricsAsJSON()).find((one) => one.name === name)
      const values = found?.values as { labels: Record<string, string>; value: number }[] | undefined
      const expected = Object.entries(labels)
      return values?.find((one) => expected.every(([label, value]) => one.labels[label] === value))?.value
    },
    status: async () => {
      // Notifies the API of the stored rows.
      changeFeed.commit(job.dataset.name)
      const { datasets: fields } = (await (await fetch(`${api.url}/data/status`)).json()) as {
        datasets: (Status & { dataset: string })[]
      }
      const found = fields.find(({ dataset }) => dataset === job.name)
      if (found === undefined) throw new Error(`/data/status does not tell of ${job.name}`)
      return found
    },
    close: async () => {
      await scheduler.stop()
      await Promise.all(runners.map((runner) => runner.close(true)))
      await api.close()
      await readDb.close()
      await pipeline.close()
    },
  }
}
