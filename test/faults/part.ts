import { once } from 'node:events'
import { type Config, parseConfig } from '../../shared/config/config.ts'
import { CADENCES, type Cadence } from '../../shared/intervals.ts'
import { announceReady, onStopSignal, runProgram } from '../../shared/process.ts'
import { QUEUE_CLASSES } from '../../shared/queue/queue-classes.ts'
import { createQueues } from '../../shared/queue/queues.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { createDatabase } from '../../shared/store/store.ts'
import { createLog, type Logger } from '../../shared/telemetry/log.ts'
import { createHttpClients } from '../../workers/http/client.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { createRunner } from '../../workers/run/runner.ts'
import { createRecomputation } from '../../workers/schedule/recompute.ts'
import { startScheduler } from '../../workers/schedule/scheduler.ts'
import { toStandInSettings } from '../upstream/settings.ts'
import { toClock, toClockTime } from './slot-clock.ts'
import { loadSmallRegistry } from './small-registry.ts'

/** The parent moves the clocks slot by slot; this process confirms each slot when its clock is there. */
interface Clocks {
  now(clock: Cadence): number
}

type Configs = Readonly<Record<Cadence, Config>>

/** Scans for missing buckets once per this many slots, and when the clock jumps or stands still. */
const SLOTS_PER_SCAN = 6

/**
 * A killed worker's job is retried after some seconds instead of 45: here a slot lasts only as long as its work. Locks last
 * long enough that a process which waits for the CPU of a busy machine is not treated as stalled.
 */
const TAKEOVER = { lockMs: 5_000, checkMs: 500 }

/**
 * A worker or a scheduler of every dataset, on clocks that its parent moves: `part.ts worker|scheduler <stand-ins>`, with the
 * stand-ins' URLs by clock as JSON.
 */
async function main(): Promise<void> {
  // The process runs until its parent disconnects.
  process.channel?.ref()
  const [role, standIns] = process.argv.slice(2)
  const urls = JSON.parse(String(standIns)) as Record<Cadence, string>
  const toConfig = (clock: Cadence) => parseConfig({ ...process.env, ...toStandInSettings(urls[clock]) })
  const configs: Configs = { '5m': toConfig('5m'), '1h': toConfig('1h'), '1d': toConfig('1d') }
  const log = createLog(String(role), configs['5m'].logLevel)
  let slot = 0
  let onMoved: (isUsual: boolean) => Promise<void> = async () => {}
  process.on('message', async (message: { slot: number }) => {
    const isUsual = message.slot === slot + 1 && message.slot % SLOTS_PER_SCAN !== 0
    slot = message.slot
    process.send?.({ slot })
    await onMoved(isUsual)
  })
  // Takes jobs only after the parent has registered this process and waits for it whenever it moves the clocks.
  process.send?.({ isJoining: true })
  await once(process, 'message')
  const clocks = { now: (clock: Cadence) => toClockTime(clock, slot) }
  if (role === 'worker') await work(configs, clocks, log)
  else onMoved = schedule(configs['5m'], clocks, log)
  announceReady({})
}

async function work(configs: Configs, clocks: Clocks, log: Logger): Promise<void> {
  const { clickhouse, redis: store } = configs['5m']
  const registry = loadSmallRegistry()
  const db = createDatabase(clickhouse, 'write')
  const redis = createRedis(store.url, log)
  const blocking = createRedis(store.url, log, 'blocking')
  const recomputation = createRecomputation(jobs, redis, store.prefix, db)
  const http = createHttpClients({ log, backoffMs: 1 })
  const redact = (text: string) => text
  const shared = { http, db, redis, blocking, recomputation, registry, log, redact, takeover: TAKEOVER }
  const runners = jobs.flatMap((job) => {
    const clock = toClock(job)
    const context = { ...shared, config: configs[clock], now: () => clocks.now(clock) }
    return QUEUE_CLASSES.map((queueClass) => createRunner(job, context, queueClass))
  })
  await Promise.all(runners.map((runner) => runner.waitUntilReady()))
  onStopSignal(async () => void (await Promise.all(runners.map((runner) => runner.close()))))
}

/** @returns a scan for due slots and, unless the clock advanced by one slot, for all missing buckets. */
function schedule(
  { clickhouse, redis: store }: Config,
  clocks: Clocks,
  log: Logger,
): (isUsual: boolean) => Promise<void> {
  const db = createDatabase(clickhouse, 'write')
  const redis = createRedis(store.url, log)
  const registry = loadSmallRegistry()
  const schedulers = CADENCES.map((clock) => {
    const own = jobs.filter((job) => toClock(job) === clock)
    const scheduled = own.map((job) => ({ job, queues: createQueues(job.name, redis, store.prefix) }))
    const now = () => clocks.now(clock)
    return startScheduler(scheduled, { db, redis, prefix: store.prefix, registry, log, now })
  })
  onStopSignal(async () => void (await Promise.all(schedulers.map((scheduler) => scheduler.stop()))))
  return async (isUsual) =>
    void (await Promise.all(schedulers.map((scheduler) => (isUsual ? scheduler.tick() : scheduler.scan()))))
}

runProgram(main)
