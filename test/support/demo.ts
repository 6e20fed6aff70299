import { join } from 'node:path'
import { inject } from 'vitest'
import { DAY_MS, toBucketStart } from '../../shared/intervals.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { type ChangeStream, createDatabase } from '../../shared/store/store.ts'
import { collectPastDays } from '../../tools/demo-history.ts'
import { evaluateGroup, toGroups } from '../../workers/alerts/evaluation.ts'
import { loadRules } from '../../workers/alerts/rules-file.ts'
import { createAlertStore } from '../../workers/alerts/state.ts'
import type { Job } from '../../workers/job/define-job.ts'
import { jobs } from '../../workers/jobs/list.ts'
import prices from '../../workers/jobs/prices.ts'
import treasury from '../../workers/jobs/treasury.ts'
import { runJob } from '../../workers/run/runner.ts'
import { createHandFeed, startApi } from './api.ts'
import { createTestConfig } from './database.ts'
import { toPendingReport } from './pending-report.ts'
import { createPipeline } from './pipeline.ts'
import { silent } from './silent.ts'

/** The fixed time of the demo in tests. */
export const DEMO_NOW = Date.parse('2026-05-06T07:05:09Z')
const TODAY = toBucketStart(DEMO_NOW, '1d')
const RATINGS = join(import.meta.dirname, '../upstream/data/sample-ratings.csv')

export interface Demo {
  /** The API's address. */
  readonly url: string
  close(): Promise<void>
}

/**
 * An API over the demo's data with a few days of history, at a fixed time. Has no change events, unless a change stream is
 * given. All tests of a run read the same data, which the first one collects.
 */
export async function startDemo(options: { changeStream?: ChangeStream } = {}): Promise<Demo> {
  const settings = { CLICKHOUSE_DATABASE: inject('stores').demo, DAO_DATA_MODE: 'demo', RATINGS_SOURCE: RATINGS }
  await collectSlot(settings)
  const config = createTestConfig(settings)
  const db = createDatabase(config.clickhouse, 'read')
  const registry = loadRegistry()
  const api = await startApi({ config, db, registry, changeFeed: createHandFeed(), now: () => DEMO_NOW, ...options })
  return {
    url: api.url,
    close: async () => {
      await api.close()
      await db.close()
    },
  }
}

/** Collects the data once per run. Concurrent tests wait for the single token in Redis, which contains the state. */
async function collectSlot(settings: Readonly<Record<string, string>>): Promise<void> {
  const { demo } = inject('stores')
  const redis = createRedis(inject('stores').settings.REDIS_URL ?? '', silent, 'blocking')
  const [, found] = (await redis.blpop(demo, 0)) ?? []
  let state = found ?? 'nothing'
  try {
    if (state === 'nothing') {
      // A partly filled database is unusable: after a failure, all waiting tests fail too.
      state = 'failed'
      await collectDemo(settings)
      state = 'collected'
    }
  } finally {
    await redis.rpush(demo, state)
    redis.disconnect()
  }
  if (state === 'failed') throw new Error('another test failed to collect the data of the demo, and says why')
}

async function collectDemo(settings: Readonly<Record<string, string>>): Promise<void> {
  // The database stays for other tests until the end of the run.
  const pipeline = await createPipeline({ registry: loadRegistry(), now: DEMO_NOW, settings, leavesDatabase: true })
  const { registry, upstream, context } = pipeline
  const collect = (job: Job, payload: Parameters<typeof runJob>[3]) =>
    runJob(job, job.connect(context), context, payload).catch(toPendingReport)
  const entities = registry.tokens.filter(({ symbol }) => symbol === 'UNI').map(({ id }) => id)
  const week = { kind: 'range', from: TODAY - 7 * DAY_MS, to: TODAY } as const
  await collect(prices, { ...week, interval: '5m', entities })
  await collect(prices, { ...week, interval: '1d' })
  await collect(treasury, { kind: 'range', from: TODAY - 30 * DAY_MS, to: TODAY, interval: '1d' })
  for (const job of jobs) await collect(job, { kind: 'slot', slot: toBucketStart(DEMO_NOW, job.cadence) })
  await collectPastDays(context, {
    upstream: upstream.url,
    days: { communities: 2, holders: 0, trades: 0 },
    now: DEMO_NOW,
    signal: new AbortController().signal,
  })
  const { rules } = loadRules(join(import.meta.dirname, '../../tools/demo-alerts.json'), () => undefined)
  const store = createAlertStore(pipeline.database.db)
  for (const group of toGroups(rules).values())
    await evaluateGroup(group, { db: pipeline.database.db, store, registry, apiUrl: '', now: DEMO_NOW })
  await pipeline.close()
}
