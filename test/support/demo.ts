import { join } from 'node:path'
import { DAY_MS, toBucketStart } from '../../shared/intervals.ts'
import { createDatabase } from '../../shared/store/clickhouse.ts'
import type { CommitLog } from '../../shared/store/commit-log.ts'
import { collectPastDays } from '../../tools/demo-history.ts'
import type { Job } from '../../workers/job/define-job.ts'
import { jobs } from '../../workers/jobs/list.ts'
import prices from '../../workers/jobs/prices.ts'
import treasury from '../../workers/jobs/treasury.ts'
import { runJob } from '../../workers/run/run-job.ts'
import { createHandFeed, startApi } from './api.ts'
import { toPendingReport } from './pending-report.ts'
import { createPipeline } from './pipeline.ts'

/** The moment at which the demo of tests stands still. */
export const DEMO_NOW = Date.parse('2026-05-06T07:05:09Z')
const TODAY = toBucketStart(DEMO_NOW, '1d')
const RATINGS = join(import.meta.dirname, '../upstream/data/sample-ratings.csv')

export interface Demo {
  /** The API's address. */
  readonly url: string
  close(): Promise<void>
}

/** The demo's data with a few days of history, at a moment that never changes, and the API that serves it. Nothing is committed but to a log that is given. */
export async function startDemo(options: { commitLog?: CommitLog } = {}): Promise<Demo> {
  const pipeline = await createPipeline({ now: DEMO_NOW, settings: { DAO_DATA_MODE: 'demo', RATINGS_SOURCE: RATINGS } })
  const { config, registry, upstream, context, clock } = pipeline
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
    days: 2,
    now: DEMO_NOW,
    signal: new AbortController().signal,
  })
  const db = createDatabase(config.clickhouse, 'read')
  const api = await startApi({ config, db, registry, commits: createHandFeed(), now: () => clock.now, ...options })
  return {
    url: api.url,
    close: async () => {
      await api.close()
      await db.close()
      await pipeline.close()
    },
  }
}
