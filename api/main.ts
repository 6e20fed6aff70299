import type { AddressInfo } from 'node:net'
import { createDatabase } from '../shared/clickhouse.ts'
import { createCommitFeed } from '../shared/commits.ts'
import { type Config, loadConfig } from '../shared/config.ts'
import { createLog, type Logger } from '../shared/log.ts'
import { createMetrics } from '../shared/metrics.ts'
import { startOpsServer, toDatabaseCheck } from '../shared/ops-server.ts'
import { announceReady, isMain, onStopSignal, runPart } from '../shared/process.ts'
import { createRedis } from '../shared/redis.ts'
import { loadRegistry } from '../shared/registry/registry.ts'
import { startTracing } from '../shared/tracing.ts'
import { createApiServer } from './server.ts'

/** How long requests under way may take to end once the process is told to. */
const DRAIN_MS = 10_000

async function start(config: Config, log: Logger): Promise<() => Promise<void>> {
  const metrics = createMetrics('api')
  const registry = loadRegistry()
  const db = createDatabase(config.clickhouse, 'read')
  // The service starts, and serves, without Redis.
  const subscriber = createRedis(config.redis.url, log, 'subscriber')
  const commits = createCommitFeed(subscriber, { prefix: config.redis.prefix, db, log })
  const server = createApiServer({ db, registry, config, commits, log, metrics })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(config.api.port, config.api.host, resolve)
  })
  const ops = await startOpsServer({
    registry: metrics,
    checks: { clickhouse: toDatabaseCheck(db) },
    host: config.ops.host,
    port: config.ops.apiPort,
    setting: 'API_OPS_PORT',
  })
  const { port } = server.address() as AddressInfo
  log.info({ host: config.api.host, port, opsPort: ops?.port, mode: config.mode }, 'API started')
  announceReady({ url: `http://${config.api.host}:${port}`, opsPort: ops?.port })

  return async () => {
    const drained = new Promise<void>((resolve) => server.close(() => resolve()))
    const deadline = setTimeout(() => server.closeAllConnections(), DRAIN_MS)
    await drained
    clearTimeout(deadline)
    commits.close()
    await Promise.all([ops?.close(), db.close()])
  }
}

/** The API as a process: listens until it is told to stop, then ends what is under way. */
async function main(): Promise<void> {
  const config = loadConfig()
  const log = createLog('api', config.logLevel)
  const tracing = await startTracing('dao-data-api', config, log)
  const stop = await start(config, log)
  onStopSignal(async () => {
    await stop()
    await tracing.stop()
    log.info('API stopped')
  })
}

if (isMain(import.meta.url)) runPart('npm run api: the read-only HTTP API, in any number.', main)
