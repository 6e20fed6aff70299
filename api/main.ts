import cluster from 'node:cluster'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Config, loadConfig } from '../shared/config/config.ts'
import { toHttpUrl } from '../shared/config/networks.ts'
import { createRedactor, findSecrets } from '../shared/config/secrets.ts'
import { startOpsServer, toDatabaseCheck } from '../shared/ops/ops-server.ts'
import { untilClickHouseAnswers } from '../shared/ops/waiting.ts'
import { announceReady, isMain, onStopSignal, runPart } from '../shared/process.ts'
import { createRedis } from '../shared/queue/redis.ts'
import {
  bridgeChangeStream,
  createChangeFeed,
  createDatabase,
  followChangeStream,
  followRegistry,
  readRegistryOrFiles,
} from '../shared/store/store.ts'
import { createLog, type Logger } from '../shared/telemetry/log.ts'
import { createMetrics, shareMetrics } from '../shared/telemetry/metrics.ts'
import { startTracing } from '../shared/telemetry/tracing.ts'
import { type AdmissionOptions, openRateLimits } from './admission/admission.ts'
import { reportStarted, startProcesses, toShare } from './processes.ts'
import { createApiServer } from './server.ts'

/** Time limit for running requests after the server has stopped listening. */
const LAST_REQUESTS_MS = 10_000
/**
 * Maximum connections that wait to be accepted; the system may allow fewer (`net.core.somaxconn`). Beyond the limit a
 * client's attempts are dropped silently, and the client retries after 1, 3, 7 and 15 seconds. Node's default of 511 is
 * reached within 0.1 seconds when many clients connect.
 */
const MOST_CONNECTING = 4_096

/** Starts the process. Tests may replace the minimum reading rate of clients. */
export async function startApi(
  config: Config,
  log: Logger,
  options: Pick<AdmissionOptions, 'minimumRate'> = {},
): Promise<{ stop(): Promise<void>; facts: { url: string; opsPort: number | undefined } }> {
  const metrics = createMetrics('api')
  if (cluster.isWorker) shareMetrics(metrics)
  const db = createDatabase(config.clickhouse, 'read')
  // The service starts, and answers, without Redis.
  const subscriber = createRedis(config.redis.url, log, 'subscriber')
  const changeFeed = createChangeFeed(subscriber, { prefix: config.redis.prefix, db, log })
  const first = await readRegistryOrFiles(db, log)
  const { registry, refresh, stop: stopFollowing } = followRegistry(db, first, { log, changeFeed })
  const [waiting, asking] = [createRedis(config.redis.url, log, 'reader'), createRedis(config.redis.url, log, 'reader')]
  const changeStream = followChangeStream({ waiting, asking }, config.redis.prefix, log)
  bridgeChangeStream(changeFeed, changeStream)
  const counter = createRedis(config.redis.url, log, 'counter')
  const limits = openRateLimits(config.api.limits, { redis: counter, prefix: config.redis.prefix, log })
  const stopping = new AbortController()
  // Until ClickHouse answers, the service responds with 503 and logs the reason.
  const ready = untilClickHouseAnswers(db, config.clickhouse.url, { log, signal: stopping.signal }).then(refresh)
  // Without a fixed port the next process would not find the file.
  const file = join(config.dataDir, `recent-requests-${config.api.port}.json`)
  const warm = config.api.port === 0 ? {} : { warmStart: { file, ready } }
  const shown = { log, metrics, stopping: stopping.signal }
  const server = createApiServer({
    db,
    registry,
    config,
    changeFeed,
    changeStream,
    limits,
    ...shown,
    ...warm,
    ...options,
  })
  const { host, port: configuredPort } = config.api
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen({ host, port: configuredPort, backlog: MOST_CONNECTING }, resolve)
  })
  const ops = await startOpsServer({
    registry: metrics,
    checks: { clickhouse: toDatabaseCheck(db), service: async () => stopping.signal.throwIfAborted() },
    host: config.ops.host,
    hosts: config.ops.hosts,
    port: config.ops.apiPort,
    setting: 'API_OPS_PORT',
  })
  const { port } = server.address() as AddressInfo
  log.info({ host: config.api.host, port, opsPort: ops?.port, mode: config.mode }, 'API started')
  const stop = async () => {
    // Load balancers send requests until they notice that this process is no longer ready.
    stopping.abort(new Error('the service is stopping'))
    await wait(config.api.drainSeconds * 1000)
    const drained = new Promise<void>((resolve) => server.close(() => resolve()))
    const deadline = setTimeout(() => server.closeAllConnections(), LAST_REQUESTS_MS)
    await drained
    clearTimeout(deadline)
    changeFeed.close()
    changeStream.close()
    counter.disconnect()
    limits.close()
    stopFollowing()
    await Promise.all([ops?.close(), db.close()])
  }
  return { stop, facts: { url: toHttpUrl(config.api.host, port), opsPort: ops?.port } }
}

/** Runs the API as one process, or as several behind one port. */
async function main(): Promise<void> {
  const config = loadConfig()
  const log = createLog('api', config.logLevel, createRedactor(findSecrets(config)))
  if (config.api.processes > 1 && cluster.isPrimary) await serveFromSeveral(config, log)
  else await serve(cluster.isWorker ? toShare(config) : config, log)
}

/** After a stop signal the process reports that it is not ready, still answers, then finishes running requests. */
async function serve(config: Config, log: Logger): Promise<void> {
  const tracing = await startTracing('dao-data-api', config, log)
  const { stop, facts } = await startApi(config, log)
  onStopSignal(async () => {
    await stop()
    await tracing.stop()
    log.info('API stopped')
  })
  if (cluster.isWorker) reportStarted(facts.url)
  else announceReady({ ...facts })
}

async function serveFromSeveral(config: Config, log: Logger): Promise<void> {
  const onLost = (reason: string) => {
    log.fatal({ reason }, 'the API gives up')
    process.exit(1)
  }
  const { stop, facts } = await startProcesses(config, { log, onLost })
  onStopSignal(stop)
  announceReady({ ...facts })
}

if (isMain(import.meta.url)) runPart('npm run api: the read-only HTTP API; any number may run.', main)
