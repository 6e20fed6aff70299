import { loadConfig } from '../../shared/config/config.ts'
import { createRedactor, findSecrets } from '../../shared/config/secrets.ts'
import { datasets } from '../../shared/datasets/list.ts'
import { startOpsServer, toDatabaseCheck } from '../../shared/ops/ops-server.ts'
import { announceReady, onStopSignal, runPart } from '../../shared/process.ts'
import { createQueue } from '../../shared/queue/queues.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createDatabase } from '../../shared/store/clickhouse.ts'
import { createLog } from '../../shared/telemetry/log.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { startTracing } from '../../shared/telemetry/tracing.ts'
import { jobs } from '../jobs/list.ts'
import { startScheduler } from '../schedule/scheduler.ts'
import { createQueueDashboard, DASHBOARD_PATH } from '../watch/queue-dashboard.ts'
import { createQueueMetrics } from '../watch/queue-metrics.ts'
import { createQueueWatch } from '../watch/queue-watch.ts'
import { createSlotMetrics } from '../watch/slot-metrics.ts'
import { createWatchdog, startWatch } from '../watch/watchdog.ts'

async function main(): Promise<void> {
  const config = loadConfig()
  const log = createLog('scheduler', config.logLevel, createRedactor(findSecrets(config)))
  const tracing = await startTracing('dao-data-scheduler', config, log)
  const redis = createRedis(config.redis.url, log)
  const db = createDatabase(config.clickhouse, 'write')
  const registered = createMetrics('scheduler')
  const metrics = createSlotMetrics(
    jobs.map(({ name }) => name),
    registered,
  )
  const context = { db, redis, prefix: config.redis.prefix, registry: loadRegistry(), log, now: Date.now, metrics }
  const scheduled = jobs.map((job) => ({ job, queue: createQueue(job.name, redis, config.redis.prefix) }))
  const scheduler = startScheduler(scheduled, context)
  log.info({ datasets: jobs.map(({ name }) => name) }, 'scheduler started')
  const queues = scheduled.map(({ queue }) => queue)
  createQueueMetrics(queues, registered)
  const { prefix } = config.redis
  const watchdog = createWatchdog({ db, redis, prefix, datasets, registry: registered, log, now: Date.now })
  const watched = scheduled.map(({ job, queue }) => ({ queue, cadence: job.cadence }))
  const queueWatch = createQueueWatch({ queues: watched, log, now: Date.now })
  const watch = startWatch([watchdog, queueWatch])
  const checks = { clickhouse: toDatabaseCheck(db), redis: () => redis.ping() }
  const { host, schedulerPort: port, token } = config.ops
  const pages = { path: DASHBOARD_PATH, listener: createQueueDashboard(queues, token) }
  const ops = await startOpsServer({ registry: registered, checks, host, port, setting: 'SCHEDULER_OPS_PORT', pages })
  await watchdog.check()
  onStopSignal(async () => {
    await Promise.all([scheduler.stop(), watch.stop()])
    await ops?.close()
    await Promise.all(scheduled.map(({ queue }) => queue.close()))
    await db.close()
    redis.disconnect()
    await tracing.stop()
    log.info('scheduler stopped')
  })
  announceReady({ opsPort: ops?.port })
}

runPart('npm run scheduler: enqueues due slots, in any number.', main)
