import { withoutOff } from '../../shared/config/datasets-off.ts'
import { datasets } from '../../shared/datasets/list.ts'
import { toInsertCheck } from '../../shared/ops/ops-server.ts'
import { announceReady, onStopSignal, runPart } from '../../shared/process.ts'
import { createQueues, toQueuePrefix } from '../../shared/queue/queues.ts'
import { requireWritable } from '../../shared/queue/redis.ts'
import { jobs } from '../jobs/list.ts'
import { createQueueDashboard, DASHBOARD_PATH } from '../monitoring/queue-dashboard.ts'
import { createQueueMetrics } from '../monitoring/queue-metrics.ts'
import { createQueueWatch } from '../monitoring/queue-watch.ts'
import { createSlotMetrics } from '../monitoring/slot-metrics.ts'
import { createWatchdog, startWatch } from '../monitoring/watchdog.ts'
import { startPublishing } from '../publish/daily.ts'
import { startScheduler } from '../schedule/scheduler.ts'
import { openProgram } from './program.ts'
import { toQueueClasses } from './queue-classes.ts'

async function main(): Promise<void> {
  const program = await openProgram('scheduler')
  const { config, log, db, redis, clock, registry, ops } = program
  const { now } = clock
  const { prefix } = config.redis
  const on = withoutOff(jobs, config.datasetsOff)
  const names = on.map(({ name }) => name)
  const metrics = createSlotMetrics(names, program.metrics)
  const scheduled = on.map((job) => ({ job, queues: createQueues(job.name, redis, prefix) }))
  const scheduler = startScheduler(scheduled, { db, redis, prefix, registry, log, ...clock, metrics })
  const { to } = config.publish
  const publishing = to === undefined ? undefined : startPublishing({ db, config, registry, log, now }, to)
  log.info({ datasets: names, off: config.datasetsOff }, 'scheduler started')
  const queues = scheduled.flatMap(({ job, queues: own }) => toQueueClasses(job).map((queueClass) => own[queueClass]))
  createQueueMetrics(queues, program.metrics, log)
  const watchdog = createWatchdog({
    db,
    redis,
    prefix,
    datasets: withoutOff(datasets, config.datasetsOff),
    records: registry,
    registry: program.metrics,
    log,
    now,
  })
  const watched = scheduled.map(({ job, queues: own }) => ({ queue: own.live, cadence: job.cadence }))
  const watch = startWatch([watchdog, createQueueWatch({ queues: watched, log, now })], log)
  const prefixes = queues.map(({ name }) => toQueuePrefix(prefix, name))
  const checks = { clickhouse: toInsertCheck(db), redis: () => requireWritable(redis, prefixes) }
  ops?.setState({
    checks,
    pages: { path: DASHBOARD_PATH, listener: createQueueDashboard(queues, config.ops.token) },
  })
  await watchdog.check()
  onStopSignal(async () => {
    await Promise.all([scheduler.stop(), watch.stop(), publishing?.stop()])
    await Promise.all(queues.map((queue) => queue.close()))
    await program.close()
    log.info('scheduler stopped')
  })
  announceReady({ opsPort: ops?.port })
}

runPart('npm run scheduler: enqueues due slots; any number may run.', main)
