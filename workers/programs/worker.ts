import type { Worker } from 'bullmq'
import { loadConfig } from '../../shared/config/config.ts'
import { isOn } from '../../shared/config/datasets-off.ts'
import { datasets } from '../../shared/datasets/list.ts'
import { toInsertCheck } from '../../shared/ops/ops-server.ts'
import { announceReady, isMain, onStopSignal, runPart } from '../../shared/process.ts'
import { toQueuePrefix } from '../../shared/queue/queues.ts'
import { createRedis, requireWritable } from '../../shared/queue/redis.ts'
import { startAlerts } from '../alerts/alerts.ts'
import { createHttpClients } from '../http/client.ts'
import { recordProviders } from '../job/state.ts'
import { jobs } from '../jobs/list.ts'
import { createWatchdog, startWatch, type Watchdog } from '../monitoring/watchdog.ts'
import { createWorkerMetrics } from '../monitoring/worker-metrics.ts'
import { createRunner, type RunnerContext } from '../run/runner.ts'
import { createRecomputation } from '../schedule/recompute.ts'
import { openProgram, type Program } from './program.ts'
import { type JobQueue, selectQueues, servesAlerts, toRegistryPart } from './queue-classes.ts'

async function checkRunning(runners: readonly Worker[]): Promise<void> {
  const idle = runners.filter((runner) => !runner.isRunning() || runner.closing !== undefined)
  if (idle.length > 0) throw new Error(`not taking jobs: ${idle.map(({ name }) => name).join(', ')}`)
}

async function main(): Promise<void> {
  // Checked before any wait: an unknown queue will not appear later.
  const { worker, datasetsOff, alerts: settings } = loadConfig()
  const alertsFile = servesAlerts(worker.queues) ? settings.file : undefined
  const selected = selectQueues(worker.queues).filter(({ job }) => isOn(job, datasetsOff))
  const program = await openProgram('worker', {
    start: async (db, config) => {
      for (const name of new Set(selected.map(({ job }) => job.name))) await recordProviders(db, name, config)
    },
    part: alertsFile === undefined ? toRegistryPart(selected) : 'whole',
  })
  const { config, log, db, redis, ops } = program
  const stopping = new AbortController()
  const context = openRunnerContext(program, stopping.signal)
  const runners = selected.map(({ job, queueClass }) => createRunner(job, context, queueClass))
  const alerts = alertsFile === undefined ? undefined : await startAlerts({ ...program, ...program.clock }, alertsFile)
  const watch = startWatch([createWatchdogOf(selected, program)], log)
  log.info({ queues: runners.map(({ name }) => name), alerts: alertsFile }, 'worker started')
  await Promise.all(runners.map((runner) => runner.waitUntilReady()))
  // On a Redis cluster the queues are spread over the nodes, and each node has to accept writes.
  const prefixes = runners.map(({ name }) => toQueuePrefix(config.redis.prefix, name))
  ops?.setState({
    checks: {
      clickhouse: toInsertCheck(db),
      redis: () => requireWritable(redis, prefixes),
      queues: () => checkRunning(runners),
    },
  })
  onStopSignal(async () => {
    const reason = new Error('the worker is stopping')
    const drained = setTimeout(() => stopping.abort(reason), config.worker.drainSeconds * 1000)
    // Without Redis no job can be finished or returned. The locks expire, and another worker takes over the jobs.
    const force = redis.status !== 'ready'
    await Promise.all([alerts?.stop(), ...runners.map((runner) => runner.close(force))])
    clearTimeout(drained)
    await watch.stop()
    await context.recomputation.close()
    context.blocking.disconnect()
    await program.close()
    log.info('worker stopped')
  })
  announceReady({ opsPort: ops?.port })
}

/**
 * Creates the resources shared by all runners of this process: connections, and provider limits that all workers share.
 */
function openRunnerContext(program: Program, handBack: AbortSignal): RunnerContext {
  const { config, log, db, redis, clock, registry, readRegistry, redact } = program
  const { prefix } = config.redis
  const metrics = createWorkerMetrics(program.metrics)
  const http = createHttpClients({
    log,
    proxy: config.proxy,
    observe: metrics.call,
    historyShare: config.worker.historyShare,
    sharedBy: { redis, prefix },
  })
  const blocking = createRedis(config.redis.url, log, 'blocking')
  const recomputation = createRecomputation(jobs, redis, prefix, db, config.datasetsOff)
  const own = { config, log, db, redis, registry, readRegistry, redact }
  return { ...own, http, blocking, recomputation, ...clock, metrics, handBack }
}

function createWatchdogOf(
  selected: readonly JobQueue[],
  { config, db, redis, clock, log, metrics, registry: records }: Program,
): Watchdog {
  const watched = datasets.filter((dataset) => selected.some(({ job }) => job.dataset.name === dataset.name))
  const { prefix } = config.redis
  return createWatchdog({ db, redis, prefix, datasets: watched, records, registry: metrics, log, now: clock.now })
}

if (isMain(import.meta.url)) runPart('npm run worker: serves the queues of WORKER_QUEUES; any number may run.', main)
