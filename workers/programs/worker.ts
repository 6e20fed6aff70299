import type { Worker } from 'bullmq'
import { requireMigrated } from '../../clickhouse/migrate.ts'
import { loadConfig } from '../../shared/config/config.ts'
import { createRedactor, findSecrets } from '../../shared/config/secrets.ts'
import { datasets } from '../../shared/datasets/list.ts'
import { DataError } from '../../shared/errors.ts'
import { CADENCES } from '../../shared/intervals.ts'
import { startOpsServer, toDatabaseCheck } from '../../shared/ops/ops-server.ts'
import { announceReady, isMain, onStopSignal, runPart } from '../../shared/process.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createDatabase } from '../../shared/store/clickhouse.ts'
import { createLog } from '../../shared/telemetry/log.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { startTracing } from '../../shared/telemetry/tracing.ts'
import type { Job } from '../job/define-job.ts'
import { jobs } from '../jobs/list.ts'
import { createHttpClients } from '../providers/http/client.ts'
import { createSharedHourLimit } from '../providers/http/hour-limit.ts'
import { createSharedRateLimit } from '../providers/http/shared-rate-limit.ts'
import { createRunner } from '../run/runner.ts'
import { createRecomputation } from '../schedule/recompute.ts'
import { createWatchdog, startWatch } from '../watch/watchdog.ts'
import { createWorkerMetrics } from '../watch/worker-metrics.ts'

/** The jobs that WORKER_QUEUES names: `all`, datasets (`prices`) and cadences (`5m`), separated by commas. */
export function selectJobs(queues: readonly string[]): readonly Job[] {
  const known = new Set<string>(['all', ...CADENCES, ...jobs.map(({ name }) => name)])
  const unknown = queues.filter((queue) => !known.has(queue))
  if (unknown.length > 0) {
    throw new DataError(
      'config',
      `WORKER_QUEUES: no queue is called ${unknown.join(', ')}; there are ${[...known].join(', ')}`,
    )
  }
  return jobs.filter(({ name, cadence }) =>
    queues.some((queue) => queue === 'all' || queue === name || queue === cadence),
  )
}

async function checkRunning(runners: readonly Worker[]): Promise<void> {
  const idle = runners.filter((runner) => !runner.isRunning() || runner.closing !== undefined)
  if (idle.length > 0) throw new Error(`not taking jobs: ${idle.map(({ name }) => name).join(', ')}`)
}

async function main(): Promise<void> {
  const config = loadConfig()
  const selected = selectJobs(config.worker.queues)
  const redact = createRedactor(findSecrets(config))
  const log = createLog('worker', config.logLevel, redact)
  const tracing = await startTracing('dao-data-worker', config, log)
  const registry = loadRegistry()
  const db = createDatabase(config.clickhouse, 'write')
  await requireMigrated(db)
  const redis = createRedis(config.redis.url, log)
  const blocking = createRedis(config.redis.url, log, 'blocking')
  const recomputation = createRecomputation(jobs, redis, config.redis.prefix)
  const registered = createMetrics('worker')
  const metrics = createWorkerMetrics(registered)
  const sharedBy = { redis, prefix: config.redis.prefix, log }
  const http = createHttpClients({
    log,
    observe: metrics.call,
    createLimit: (provider, perMinute) => createSharedRateLimit(provider, perMinute, sharedBy),
    createHourLimit: (provider, perHour) => createSharedHourLimit(provider, perHour, sharedBy),
  })
  const stopping = new AbortController()
  const handBack = stopping.signal
  const context = {
    config,
    http,
    db,
    redis,
    blocking,
    recomputation,
    registry,
    log,
    now: Date.now,
    metrics,
    handBack,
    redact,
  }
  const runners = selected.map((job) => createRunner(job, context))
  const watched = datasets.filter((dataset) => selected.some((job) => job.dataset.name === dataset.name))
  const { prefix } = config.redis
  const watchdog = createWatchdog({ db, redis, prefix, datasets: watched, registry: registered, log, now: Date.now })
  const watch = startWatch([watchdog])
  log.info({ queues: selected.map(({ name }) => name) }, 'worker started')
  await Promise.all(runners.map((runner) => runner.waitUntilReady()))
  const checks = { clickhouse: toDatabaseCheck(db), redis: () => redis.ping(), queues: () => checkRunning(runners) }
  const { host, workerPort: port } = config.ops
  const ops = await startOpsServer({ registry: registered, checks, host, port, setting: 'WORKER_OPS_PORT' })
  onStopSignal(async () => {
    const reason = new Error('the worker is stopping')
    const drained = setTimeout(() => stopping.abort(reason), config.worker.drainSeconds * 1000)
    // Without Redis nothing can be finished or handed back: the jobs' locks run out, and another worker takes them.
    const force = redis.status !== 'ready'
    await Promise.all(runners.map((runner) => runner.close(force)))
    clearTimeout(drained)
    await watch.stop()
    await recomputation.close()
    await ops?.close()
    await db.close()
    redis.disconnect()
    blocking.disconnect()
    await tracing.stop()
    log.info('worker stopped')
  })
  announceReady({ opsPort: ops?.port })
}

if (isMain(import.meta.url)) runPart('npm run worker: serves the queues that WORKER_QUEUES names, in any number.', main)
