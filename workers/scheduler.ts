import type { Redis } from 'ioredis'
import { schedule } from 'node-cron'
import { createDatabase, type Database } from '../shared/clickhouse.ts'
import { loadConfig } from '../shared/config.ts'
import { datasets } from '../shared/datasets/list.ts'
import { toReason } from '../shared/errors.ts'
import { readNewest } from '../shared/freshness.ts'
import { CADENCES, type Cadence, INTERVAL_SECONDS, toBucketStart } from '../shared/intervals.ts'
import { createLog, type Logger } from '../shared/log.ts'
import { createMetrics } from '../shared/metrics.ts'
import { startOpsServer, toDatabaseCheck } from '../shared/ops-server.ts'
import { announceReady, isMain, onStopSignal, runPart } from '../shared/process.ts'
import { createQueue, type DatasetQueue, RANGE_PRIORITY, toSlotJobId } from '../shared/queues.ts'
import { createRedis } from '../shared/redis.ts'
import { loadRegistry, type Registry } from '../shared/registry/registry.ts'
import { startTracing } from '../shared/tracing.ts'
import { planChunks } from './chunks.ts'
import type { Job } from './define.ts'
import { inEnqueueSpan } from './job-span.ts'
import { jobs } from './jobs.ts'
import { createQueueDashboard, DASHBOARD_PATH } from './queue-dashboard.ts'
import { createQueueMetrics } from './queue-metrics.ts'
import { createSlotMetrics, type SlotMetrics } from './slot-metrics.ts'
import { createWatchdog } from './watchdog.ts'

export interface SchedulerContext {
  readonly db: Database
  readonly redis: Redis
  readonly prefix: string
  readonly registry: Registry
  readonly log: Logger
  readonly now: () => number
  readonly metrics?: SlotMetrics
}

/** A job with the queue its slots go to. */
export interface Scheduled {
  readonly job: Job
  readonly queue: DatasetQueue
}

const DAY_MS = 86_400_000
/** How far back missed slots are caught up without being asked; beyond it the operator back-fills. */
const CATCH_UP_MS = 31 * DAY_MS

/** The newest slot that was enqueued, or that the stored series tells of when Redis has no record. */
async function readNewestSlot(context: SchedulerContext, job: Job): Promise<number | undefined> {
  const recorded = await context.redis.hget(slotsKey(context.prefix), job.name)
  if (recorded !== null) return Number(recorded)
  const newest = await readNewest(context.db, job.dataset)
  return newest === null ? undefined : toBucketStart(newest, job.cadence)
}

const slotsKey = (prefix: string) => `${prefix}:slots`

/**
 * Enqueues what is due: the current slot, and the missed ones before it as ranges where the job has history; before the
 * first slot ever, the days that the job wants for it. Job ids are deterministic and the record only moves after
 * everything is enqueued, so any number of schedulers may do this at once, and one that dies half-way is repeated by the
 * next.
 */
export async function enqueueDue({ job, queue }: Scheduled, context: SchedulerContext): Promise<void> {
  const cadenceMs = INTERVAL_SECONDS[job.cadence] * 1000
  const current = toBucketStart(context.now(), job.cadence)
  const recorded = await readNewestSlot(context, job)
  if (recorded === current) return
  const newest = recorded !== undefined && recorded < current ? recorded : undefined
  if (recorded !== undefined && recorded > current + cadenceMs) {
    const told = { dataset: job.name, recorded: new Date(recorded).toISOString() }
    context.log.error(told, 'the record is ahead of the clock: going on with the current slot')
  } else if (recorded !== undefined && recorded > current) return
  if (newest !== undefined && newest + cadenceMs < current)
    await enqueueMissed({ job, queue }, newest, current, context)
  const { firstRunDays } = job.history ?? {}
  if (recorded === undefined && firstRunDays !== undefined)
    await enqueueHistory({ job, queue }, current - firstRunDays * DAY_MS, current, context)
  const jobId = toSlotJobId(job.name, current)
  await inEnqueueSpan(job.name, jobId, (options) =>
    queue.add(job.name, { kind: 'slot', slot: current }, { jobId, ...options }),
  )
  await context.redis.hset(slotsKey(context.prefix), job.name, current)
  context.metrics?.slots(job.name, 'enqueued', 1)
  context.log.info({ dataset: job.name, slot: new Date(current).toISOString() }, 'slot enqueued')
}

async function enqueueMissed(
  { job, queue }: Scheduled,
  newest: number,
  current: number,
  context: SchedulerContext,
): Promise<void> {
  // From the newest slot itself: what it was to fill lies partly before it, as its observations were made before it.
  const from = Math.max(newest, current - CATCH_UP_MS)
  const missed = (current - from) / (INTERVAL_SECONDS[job.cadence] * 1000) - 1
  const chunks = await enqueueHistory({ job, queue }, from, current, context)
  context.metrics?.slots(job.name, chunks > 0 ? 'caught_up' : 'lost', missed)
  const told = { dataset: job.name, missed, from: new Date(from).toISOString(), jobs: chunks }
  context.log.warn(told, chunks > 0 ? 'missed slots enqueued' : 'missed slots are lost: this dataset has no history')
}

/** Enqueues [from, to) as ranges of the dataset's finest history; returns how many jobs that are, 0 where it has none. */
async function enqueueHistory(
  { job, queue }: Scheduled,
  from: number,
  to: number,
  context: SchedulerContext,
): Promise<number> {
  const interval = job.history?.intervals[0] ?? job.cadence
  const range = { from: toBucketStart(from, interval), to, interval }
  const chunks = planChunks(job, job.entities(context.registry), range)
  await queue.addBulk(
    chunks.map(({ id, payload }) => ({ name: job.name, data: payload, opts: { jobId: id, priority: RANGE_PRIORITY } })),
  )
  return chunks.length
}

/** How often due slots are looked for, per cadence: a slot starts at most this late. */
const TICK: Readonly<Record<Cadence, string>> = { '5m': '*/5 * * * * *', '1h': '*/15 * * * * *', '1d': '0 * * * * *' }

/** Looks for due slots at once and then on every tick (cron expressions with seconds, per cadence). A failing tick is logged and the next one repeats it. */
export function startScheduler(
  scheduled: readonly Scheduled[],
  context: SchedulerContext,
  ticks: Readonly<Record<Cadence, string>> = TICK,
): { stop(): Promise<void> } {
  const tick = async (cadence: Cadence) => {
    for (const one of scheduled.filter(({ job }) => job.cadence === cadence)) {
      try {
        await enqueueDue(one, context)
      } catch (error) {
        context.metrics?.failed(one.job.name)
        context.log.error({ dataset: one.job.name, reason: toReason(error) }, 'slots could not be enqueued')
      }
    }
  }
  const tasks = CADENCES.map((cadence) =>
    schedule(ticks[cadence], () => tick(cadence), { noOverlap: true, timezone: 'UTC' }),
  )
  const first = Promise.all(CADENCES.map(tick))
  return {
    stop: async () => {
      await Promise.all(tasks.map((task) => task.destroy()))
      await first
    },
  }
}

/** How often stored data is looked at. */
const WATCH = '*/15 * * * * *'

async function main(): Promise<void> {
  const config = loadConfig()
  const log = createLog('scheduler', config.logLevel)
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
  const watchdog = createWatchdog({ db, datasets, registry: registered, log, now: Date.now })
  const watch = schedule(WATCH, () => watchdog.check(), { noOverlap: true, timezone: 'UTC' })
  const checks = { clickhouse: toDatabaseCheck(db), redis: () => redis.ping() }
  const { host, schedulerPort: port, token } = config.ops
  const pages = { path: DASHBOARD_PATH, listener: createQueueDashboard(queues, token) }
  const ops = await startOpsServer({ registry: registered, checks, host, port, setting: 'SCHEDULER_OPS_PORT', pages })
  await watchdog.check()
  announceReady({ opsPort: ops?.port })
  onStopSignal(async () => {
    await Promise.all([scheduler.stop(), watch.destroy()])
    await ops?.close()
    await Promise.all(scheduled.map(({ queue }) => queue.close()))
    await db.close()
    redis.disconnect()
    await tracing.stop()
    log.info('scheduler stopped')
  })
}

if (isMain(import.meta.url)) runPart('npm run scheduler: enqueues due slots, in any number.', main)
