import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createDatabase } from '../shared/clickhouse.ts'
import { type CommitFeed, createCommitFeed } from '../shared/commits.ts'
import { type Config, loadConfig } from '../shared/config.ts'
import { toReason } from '../shared/errors.ts'
import { createLog, type Logger } from '../shared/log.ts'
import { createMetrics } from '../shared/metrics.ts'
import { startOpsServer, toDatabaseCheck } from '../shared/ops-server.ts'
import { announceReady, isMain, onStopSignal, runProgram } from '../shared/process.ts'
import { createRedis } from '../shared/redis.ts'
import { loadRegistry } from '../shared/registry/registry.ts'
import { createApp } from './app.ts'

/** How long requests under way may take to end once the process is told to. */
const DRAIN_MS = 10_000

/** Follows commits as soon as Redis is there: the service starts, and serves, without it. */
function followCommits(config: Config, log: Logger): CommitFeed {
  const subscriber = createRedis(config.redis.url, log, 'subscriber')
  const reader = createRedis(config.redis.url, log, 'commands')
  let feed: CommitFeed | undefined
  createCommitFeed(subscriber, reader, config.redis.prefix, log).then(
    (created) => {
      feed = created
    },
    (error: unknown) => log.warn({ reason: toReason(error) }, 'commits cannot be followed'),
  )
  return {
    version: (dataset) => feed?.version(dataset),
    close: async () => {
      subscriber.disconnect()
      reader.disconnect()
    },
  }
}

async function start(config: Config, log: Logger): Promise<() => Promise<void>> {
  const metrics = createMetrics('api')
  const registry = loadRegistry()
  const db = createDatabase(config.clickhouse, 'read')
  const commits = followCommits(config, log)
  const server = createServer(createApp({ db, registry, config, commits, log, metrics }))
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
    await Promise.all([ops?.close(), commits.close(), db.close()])
  }
}

/** The API as a process: listens until it is told to stop, then ends what is under way. */
async function main(): Promise<void> {
  const config = loadConfig()
  const log = createLog('api', config.logLevel)
  const stop = await start(config, log)
  onStopSignal(async () => {
    await stop()
    log.info('API stopped')
  })
}

if (isMain(import.meta.url)) runProgram(main)
