import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Config, loadConfig, provideSettings } from '../shared/config/config.ts'
import { isOn } from '../shared/config/datasets-off.ts'
import { isFoundFolder, removeRunning, writeRunning } from '../shared/config/running-stack.ts'
import { createRedactor, findSecrets } from '../shared/config/secrets.ts'
import { toReason } from '../shared/errors.ts'
import { findFreePort } from '../shared/free-port.ts'
import { DAY_MS, HISTORY_START } from '../shared/intervals.ts'
import { onStopSignal, runProgram } from '../shared/process.ts'
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
import { probeProviders } from '../workers/probe/probe.ts'
import { toShortReport } from '../workers/probe/report.ts'
import { publishNow, startPublishing } from '../workers/publish/daily.ts'
import { createRecomputation } from '../workers/schedule/recompute.ts'
import { collectPastDays } from './demo-history.ts'
import { lockFolder } from './lock.ts'
import { prepareStores } from './stores.ts'
import { createSupervisor, findDiskFault, type Part } from './supervisor.ts'

const HELP = `tsx tools/stack.ts demo|live

Runs all processes of the system on this machine and stops them together; restarts a process that exits unexpectedly.
Uses the stores of REDIS_URL and CLICKHOUSE_URL; starts a store without a setting as a private child over the data folder.

  demo  simulated providers, a separate database, history back-filled at the start (npm start)
  live  the real providers, settings from .env (npm run live)`

/** The demo's settings. The environment overrides them, and they override .env, which is meant for a live system. */
function toDemoSettings(upstream: string): Record<string, string> {
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

/** Longer than the deadlines of all processes together, because they are stopped one after the other. */
const STOP_DEADLINE_MS = 90_000

const stopping = new AbortController()

/** The data folder, once locked. */
let dataFolder: string | undefined

const supervisor = createSupervisor({
  say: (line) => console.error(line),
  findFault: () => (dataFolder === undefined ? undefined : findDiskFault(dataFolder)),
  onLost: (reason) => {
    console.error(`${reason}\nEverything is stopped.`)
    process.exitCode = 1
    process.kill(process.pid, 'SIGTERM')
  },
})

/** Unlocks the data folder. */
let unlock = () => {}

/** Lets commands find this system. */
function announceRunning({ mode, dataDir, clickhouse, redis }: Config): void {
  // A cluster's prefix has braces, which the setting has not.
  const settings = { CLICKHOUSE_DATABASE: clickhouse.database, QUEUE_PREFIX: redis.prefix.replace(/^\{|\}$/g, '') }
  writeRunning(dataDir, { pid: process.pid, mode, settings })
  const free = unlock
  unlock = () => {
    removeRunning(dataDir)
    free()
  }
}

/** Stops the publication of the demo. */
let stopPublishing = async () => {}

async function stopAll(): Promise<void> {
  stopping.abort(new Error('the system is stopping'))
  await stopPublishing()
  await supervisor.stop()
  unlock()
}

/** The stand-in for the providers. A restart uses the same port, because other processes have its address in their settings. */
async function toUpstream(): Promise<{ part: Part; url: string }> {
  const port = String(await findFreePort())
  const part = { name: 'upstream stand-in', file: 'test/upstream/main.ts', args: ['--port', port] }
  return { part, url: `http://127.0.0.1:${port}` }
}

/**
 * The demo's history: prices daily from the API's earliest start, hourly for 90 days, 5-minute for the last 31. In the
 * older ranges the index has a point wherever its members have prices.
 */
async function backfillDemo(config: Config): Promise<void> {
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
    const outcomes = await collectHistories(on, stores, { signal: stopping.signal })
    if (stopping.signal.aborted) return
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
async function collectDemoPast(config: Config, upstream: string): Promise<void> {
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
    signal: stopping.signal,
  })
  await Promise.all([recomputation.close(), db.close()])
  redis.disconnect()
  if (failed > 0)
    console.log(`${failed} past days of communities, holders or trades are missing: see the reasons above`)
  else if (collected > 0) console.log(`${collected} past days of communities, holders and trades are collected`)
}

/**
 * Publishes the demo into its data folder, now and once a day. The publication uses one thread of ClickHouse, because
 * the page is in use. If the operator has set another target, the scheduler publishes there.
 */
async function publishDemo(config: Config): Promise<void> {
  if (config.publish.to !== undefined) return
  const to = join(config.dataDir, 'published')
  const log = createLog('publish', 'warn')
  const db = createDatabase(config.clickhouse, 'write')
  const options = { db, config, registry: loadRegistry(), log, now: Date.now, threads: 1 }
  const first = publishNow(options, to, stopping.signal)
  stopPublishing = async () => {
    await first.catch(() => undefined)
    await db.close()
  }
  try {
    const { written, unchanged } = await first
    console.log(`published as ${written.length + unchanged} files: ${config.api.publicUrl}/sql`)
  } catch (error) {
    if (stopping.signal.aborted) return
    console.error(`the publication failed and is repeated within ten minutes: ${toReason(error)}`)
  }
  if (stopping.signal.aborted) return
  const daily = startPublishing(options, to)
  stopPublishing = async () => {
    await daily.stop()
    await db.close()
  }
}

function printAddresses(config: Config): void {
  const base = config.api.publicUrl
  const start = new Date(Date.now() - DAY_MS).toISOString().slice(0, 10)
  console.log(`${base}/  everything on one page

dao-data is up (${config.mode === 'demo' ? 'DEMO: all numbers are simulated by the local stand-in' : 'live providers'}). Try:
  ${base}/data/tokens
  ${base}/data/tokens/historic-financial?name=Uniswap&interval=1h&start=${start}
  ${base}/data/index/historic?period=30
  ${base}/data/status
  ${base}/reference
${toReach(config)}
Ctrl-C stops everything.
`)
}

/** Sends one small request to each provider, so that a wrong key is reported now and not by missing data tomorrow. */
async function printProviders(config: Config): Promise<void> {
  const db = createDatabase(config.clickhouse, 'read')
  const registry = loadRegistry()
  const [log, now] = [createLog('providers', 'silent'), Date.now()]
  const { signal } = stopping
  try {
    const probes = await probeProviders({ config, registry, db, log, now, signal, isShort: true, timeoutMs: 30_000 })
    console.log(toShortReport(probes))
  } catch (error) {
    // A failed check of the providers must not end the system.
    if (!signal.aborted) console.error(`the providers could not be checked: ${toReason(error)}`)
  } finally {
    await db.close()
  }
}

/** Explains how commands find the stores: through the data folder, or through the operator's settings. */
function toReach({ dataDir }: Config): string {
  const commandsHint = 'The other commands (docs/commands.md) find these stores'
  return isFoundFolder(dataDir)
    ? `${commandsHint} by themselves.`
    : `${commandsHint} with\n  export DATA_DIR='${dataDir}'`
}

/** Runs the system. If a process cannot start, stops the others and reports the reason. */
async function run(): Promise<void> {
  try {
    await main()
  } catch (error) {
    // While stopping, a process that exits before it was ready is not an error.
    if (stopping.signal.aborted) return
    await stopAll()
    throw error
  }
}

async function main(): Promise<void> {
  const [mode, ...more] = process.argv.slice(2)
  if ((mode !== 'demo' && mode !== 'live') || more.length > 0) {
    console.log(HELP)
    process.exitCode = mode === '--help' || more[0] === '--help' ? 0 : 2
    return
  }
  onStopSignal(stopAll, STOP_DEADLINE_MS)
  const upstream = mode === 'demo' ? await toUpstream() : undefined
  if (upstream !== undefined) provideSettings(toDemoSettings(upstream.url))
  // There is only one API here, so no other process takes over its clients.
  provideSettings({ API_DRAIN_SECONDS: '0' })
  const { dataDir } = loadConfig()
  unlock = lockFolder(dataDir)
  dataFolder = dataDir
  const standIns = upstream === undefined ? [] : [supervisor.start(upstream.part)]
  const [config] = await Promise.all([prepareStores(supervisor, mode), ...standIns])
  announceRunning(config)
  const parts: readonly Part[] = [
    { name: 'worker', file: 'workers/programs/worker.ts' },
    { name: 'scheduler', file: 'workers/programs/scheduler.ts' },
  ]
  await Promise.all([
    ...parts.map(supervisor.start),
    // The page is ready before the processes that fill it.
    supervisor.start({ name: 'API', file: 'api/main.ts' }).then(() => printAddresses(config)),
  ])
  if (upstream === undefined) return printProviders(config)
  await collectDemoHistory(config, upstream.url)
}

const MOST_TRIES = 5
const RETRY_MS = 3_000

/** Skips stored days, so that after a restart of a store only little work is repeated. */
async function collectDemoHistory(config: Config, upstream: string): Promise<void> {
  for (let tries = 1; !stopping.signal.aborted; tries += 1) {
    try {
      await collectDemoPast(config, upstream)
      if (!stopping.signal.aborted) await backfillDemo(config)
      break
    } catch (error) {
      if (stopping.signal.aborted) return
      const next = tries < MOST_TRIES ? 'it continues' : 'the next start continues it'
      console.error(`the history was interrupted, ${next}: ${toReason(error)}`)
      if (tries === MOST_TRIES) return
      await wait(RETRY_MS)
    }
  }
  if (!stopping.signal.aborted) await publishDemo(config)
}

runProgram(run)
