import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Config } from '../shared/config/config.ts'
import { isOn } from '../shared/config/datasets-off.ts'
import { createRedactor, findSecrets } from '../shared/config/secrets.ts'
import { toReason } from '../shared/errors.ts'
import { DAY_MS, HISTORY_START } from '../shared/intervals.ts'
import { createRedis } from '../shared/queue/redis.ts'
import { loadRegistry } from '../shared/registry/registry.ts'
import { createDatabase } from '../shared/store/store.ts'
import { createLog } from '../shared/telemetry/log.ts'
import { toStandInSettings } from '../test/upstream/settings.ts'
import { collectHistories } from '../workers/backfill/collect-history.ts'
import { isAsGoodAsProviders } from '../workers/backfill/outcome.ts'
import { toOutcomeTable } from '../workers/backfill/outcome-table.ts'
import { planBackfill } from '../workers/backfill/plan.ts'
import { jobs } from '../workers/jobs/list.ts'
import { publishNow, startPublishing } from '../workers/publish/daily.ts'
import { createRecomputation } from '../workers/schedule/recompute.ts'
import { collectPastDays } from './demo-history.ts'

/** The demo's settings. The environment overrides them, and they override .env, which is meant for a live system. */
export function toDemoSettings(upstream: string): Record<string, string> {
  const dataDir = resolve('.data/demo')
  return {
    DAO_DATA_MODE: 'demo',
    DATA_DIR: dataDir,
    CLICKHOUSE_DATABASE: 'dao_data_demo',
    QUEUE_PREFIX: 'dao-data-demo',
    LOG_LEVEL: 'error',
    WORKER_QUEUES: 'all',
    ...toStandInSettings(upstream),
    ALERTS_FILE: resolve('tools/demo-alerts.json'),
    RATINGS_SOURCE: resolve('test/upstream/data/sample-ratings.csv'),
    // The values in .env are targets of the live system.
    PUBLISH_TO: '',
    PUBLISHED_FOLDER: '',
  }
}

/**
 * The demo's history: prices daily from the API's earliest start, hourly for 90 days, 5-minute for the last 31. In the
 * older ranges the index has a point wherever its members have prices.
 */
async function backfillDemo(config: Config, signal: AbortSignal): Promise<void> {
  const registry = loadRegistry()
  const now = Date.now()
  const daysAgo = (days: number) => new Date(now - days * DAY_MS).toISOString().slice(0, 10)
  const plan = (dataset: string, interval: string, from: string, to?: string) =>
    planBackfill({ dataset, interval, from, to, only: undefined }, registry, now)
  const requests = [
    plan('prices', '1d', HISTORY_START, daysAgo(90)),
    plan('prices', '1h', daysAgo(90), daysAgo(31)),
    plan('prices', '5m', daysAgo(31)),
    plan('tvl', '1d', daysAgo(90)),
    plan('treasury', '1d', daysAgo(370)),
    plan('fees', '1d', daysAgo(90)),
    // The jobs of these datasets are enqueued when prices and treasuries are stored. The datasets are planned here too,
    // so that the history counts as complete only after them.
    plan('market-cap', '1d', HISTORY_START),
    plan('treasury-value', '1d', daysAgo(370)),
    plan('index', '5m', daysAgo(31)),
  ]
  const redis = createRedis(config.redis.url, createLog('backfill', 'error'))
  const db = createDatabase(config.clickhouse, 'write')
  try {
    const stores = { db, redis, prefix: config.redis.prefix, now: Date.now }
    const on = requests.filter(({ job }) => isOn(job, config.datasetsOff))
    const outcomes = await collectHistories(on, stores, { signal })
    if (signal.aborted) return
    console.log(toOutcomeTable(outcomes))
    console.log(
      outcomes.every(isAsGoodAsProviders)
        ? 'history is complete: all data of the providers is stored'
        : 'history is not complete: the table above shows the missing data and the reasons',
    )
  } finally {
    redis.disconnect()
    await db.close()
  }
}

/**
 * The demo's history of communities and holders, which only the stand-in can serve, and of trades. There are more than 30
 * days of trades, so that the sums of 30 days differ from those of all trades.
 */
async function collectDemoPast(config: Config, upstream: string, signal: AbortSignal): Promise<void> {
  const log = createLog('past days', 'error')
  const redis = createRedis(config.redis.url, log)
  const db = createDatabase(config.clickhouse, 'write')
  const recomputation = createRecomputation(jobs, redis, config.redis.prefix, db)
  const redact = createRedactor(findSecrets(config))
  const context = { config, db, redis, recomputation, registry: loadRegistry(), log, redact }
  const { collected, failed } = await collectPastDays(context, {
    upstream,
    days: { communities: 90, holders: 31, trades: 32 },
    now: Date.now(),
    signal,
  })
  await Promise.all([recomputation.close(), db.close()])
  redis.disconnect()
  if (failed > 0)
    console.log(`${failed} past days of communities, holders or trades are missing: see the reasons above`)
  else if (collected > 0) console.log(`${collected} past days of communities, holders and trades are collected`)
}

let stopPublishing = async () => {}

/** Ends the publication of the demo, after the signal of its history is aborted. */
export const stopDemo = (): Promise<void> => stopPublishing()

/**
 * Publishes the demo into its data folder, now and once a day. The publication uses one thread of ClickHouse, because
 * the page is in use. If the operator has set another target, the scheduler publishes there.
 */
async function publishDemo(config: Config, signal: AbortSignal): Promise<void> {
  if (config.publish.to !== undefined) return
  const to = join(config.dataDir, 'published')
  const log = createLog('publish', 'warn')
  const db = createDatabase(config.clickhouse, 'write')
  const options = { db, config, registry: loadRegistry(), log, now: Date.now, threads: 1 }
  const first = publishNow(options, to, signal)
  stopPublishing = async () => {
    await first.catch(() => undefined)
    await db.close()
  }
  try {
    const { written, unchanged } = await first
    console.log(`published as ${written.length + unchanged} files: ${config.api.publicUrl}/sql`)
  } catch (error) {
    if (signal.aborted) return
    console.error(`the publication failed and is repeated within ten minutes: ${toReason(error)}`)
  }
  if (signal.aborted) return
  const daily = startPublishing(options, to)
  stopPublishing = async () => {
    await daily.stop()
    await db.close()
  }
}

const MOST_TRIES = 5
const RETRY_MS = 3_000

/**
 * Collects the history of the demo, then publishes it daily. Skips stored days, so that after a restart of a store only
 * little work is repeated.
 */
export async function collectDemoHistory(config: Config, upstream: string, signal: AbortSignal): Promise<void> {
  for (let tries = 1; !signal.aborted; tries += 1) {
    try {
      await collectDemoPast(config, upstream, signal)
      if (!signal.aborted) await backfillDemo(config, signal)
      break
    } catch (error) {
      if (signal.aborted) return
      const next = tries < MOST_TRIES ? 'it continues' : 'the next start continues it'
      console.error(`the history was interrupted, ${next}: ${toReason(error)}`)
      if (tries === MOST_TRIES) return
      await wait(RETRY_MS)
    }
  }
  if (!signal.aborted) await publishDemo(config, signal)
}
