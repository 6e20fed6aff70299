import type { Worker } from 'bullmq'
import { z } from 'zod'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import type { QueueClass } from '../../shared/queue/queue-classes.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import prices from '../../workers/jobs/prices.ts'
import { createRunner } from '../../workers/run/runner.ts'
import type { SchedulerContext } from '../../workers/schedule/due-slots.ts'
import { createPipeline, type Pipeline } from './pipeline.ts'
import { silent } from './silent.ts'

const counts = z.object({ tokens: z.number(), rows: z.number() })
type Counts = z.output<typeof counts>

/** A pipeline with workers that collect and store prices. */
export interface PricesPipeline extends Pipeline {
  /** Workers that stop with the pipeline. */
  readonly runners: Worker[]
  readonly scheduler: SchedulerContext
  startWorker(queueClass?: QueueClass): Worker
  /** The number of tokens and rows in a table. */
  stored(table?: string): Promise<Counts | undefined>
  /** All stored prices without their times of storage. */
  dump(): Promise<string>
  /** The tokens with quotes at the pipeline's time; ended tokens have only history. */
  liveTokens(): ReturnType<typeof tokenPrices.entities>
}

export async function createPricesPipeline(): Promise<PricesPipeline> {
  const pipeline = await createPipeline()
  const { context, config, registry, clock, database } = pipeline
  const runners: Worker[] = []
  return {
    ...pipeline,
    runners,
    scheduler: {
      db: context.db,
      redis: context.redis,
      prefix: config.redis.prefix,
      registry,
      log: silent,
      now: () => clock.now,
    },
    startWorker: (queueClass) => {
      const runner = createRunner(prices, context, queueClass)
      runners.push(runner)
      return runner
    },
    stored: async (table = 'token_prices') => {
      const sql = `SELECT uniqExact(token) AS tokens, count() AS rows FROM ${table} FINAL`
      const [row] = await database.db.rows({ name: 'stored', sql, schema: counts })
      return row
    },
    dump: async () =>
      JSON.stringify(
        await database.db.rows({
          name: 'dump',
          sql: 'SELECT * EXCEPT version FROM token_prices FINAL ORDER BY ALL',
          schema: z.record(z.string(), z.unknown()),
        }),
      ),
    liveTokens: () => tokenPrices.entities(registry).filter((token) => isThereAt(token, clock.now)),
    close: async () => {
      await Promise.all(runners.map((runner) => runner.close()))
      await pipeline.close()
    },
  }
}

/** Resolves when all jobs of the queue are finished, with the jobs by outcome. */
export async function untilDone(runner: Worker, jobs: number) {
  const done = { completed: [] as string[], failed: [] as { id: string; reason: string }[] }
  await new Promise<void>((resolve) => {
    const check = () => done.completed.length + done.failed.length >= jobs && resolve()
    runner.on('completed', (job) => {
      done.completed.push(String(job.id))
      check()
    })
    runner.on('failed', (job, error) => {
      if (job?.finishedOn === undefined) return
      done.failed.push({ id: String(job.id), reason: error.message })
      check()
    })
  })
  return done
}
