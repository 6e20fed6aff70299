import { toBucketStart } from '../../shared/intervals.ts'
import type { JobReport } from '../../shared/queue/queues.ts'
import type { Token } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { createDatabase } from '../../shared/store/store.ts'
import type { Job } from '../../workers/job/define-job.ts'
import { runJob } from '../../workers/run/runner.ts'
import { createHandFeed, type HandFeed, startApi } from './api.ts'
import { getToken } from './entities.ts'
import { createHandLog } from './hand-log.ts'
import { createPipeline, type Pipeline, type PipelineOptions } from './pipeline.ts'

/** The complete data path: the providers' stand-in, jobs, tables, and the API. */
export interface ServedPipeline extends Pipeline {
  readonly changeFeed: HandFeed
  /** The API's address. */
  readonly url: string
  /** Disconnects every stream. */
  drop(): void
  /** Deletes the events of the change stream up to now. */
  forget(): void
  /** Runs a job for the current slot and publishes its change event. */
  collect(job: Job): Promise<JobReport>
  tokenOf(symbol: string): Token
}

/** `toServed` returns the registry of the API, by default that of the pipeline. */
export async function createServedPipeline({
  toServed = (registry) => registry,
  ...options
}: PipelineOptions & { now: number; toServed?: (registry: Registry) => Registry }): Promise<ServedPipeline> {
  const pipeline = await createPipeline(options)
  const { config, clock, context } = pipeline
  const registry = toServed(pipeline.registry)
  const db = createDatabase(config.clickhouse, 'read')
  const changeFeed = createHandFeed()
  const log = createHandLog()
  const api = await startApi({ config, db, registry, changeFeed, changeStream: log.changeStream, now: () => clock.now })
  return {
    ...pipeline,
    changeFeed,
    url: api.url,
    drop: api.drop,
    forget: log.forget,
    collect: async (job) => {
      const slot = toBucketStart(clock.now, job.cadence)
      const report = await runJob(job, job.connect(context), context, { kind: 'slot', slot, again: true })
      changeFeed.commit(job.dataset.name)
      log.commit(job.dataset.name)
      return report
    },
    tokenOf: (symbol) => getToken(pipeline.registry, symbol),
    close: async () => {
      await api.close()
      await db.close()
      await pipeline.close()
    },
  }
}
