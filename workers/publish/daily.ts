import { z } from 'zod'
import type { Config } from '../../shared/config/config.ts'
import { toReason } from '../../shared/errors.ts'
import { HOUR_MS, toBucketStart } from '../../shared/intervals.ts'
import { snapshot } from '../../shared/registry/ends.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { startTicks, type Ticks } from '../monitoring/ticks.ts'
import type { Outcome } from './publish.ts'

/** Most daily data of the day before is collected by then, in milliseconds after midnight UTC. */
const DUE_AFTER_MS = HOUR_MS
/** Cron expression of the check whether the publication of the day is due. A failed one is repeated by it. */
const TICK = '0 */10 * * * *'
/** The job under which `job_state` has the last publication of each target. */
const STATE_JOB = 'publish'

const lastRun = z.object({ at: z.int() })

async function isDue(db: Database, place: string, now: number): Promise<boolean> {
  const [last] = await db.rows({
    name: 'last-publication',
    sql: 'SELECT toUnixTimestamp64Milli(max(written_at)) AS at FROM job_state FINAL WHERE job = {job: String} AND name = {place: String}',
    params: { job: STATE_JOB, place },
    schema: lastRun,
  })
  const due = toBucketStart(now - DUE_AFTER_MS, '1d') + DUE_AFTER_MS
  return (last?.at ?? 0) < due
}

interface DailyOptions {
  readonly db: Database
  readonly config: Config
  readonly registry: Registry
  readonly log: Logger
  readonly now: () => number
  /** Threads of ClickHouse for each statement; default: one for each core. */
  readonly threads?: number
}

/** Publishes to a target and records it, so that the publication of the day is not due again. */
export async function publishNow(
  { db, config, registry, log, now, threads }: DailyOptions,
  to: string,
  signal: AbortSignal,
): Promise<Outcome> {
  // Loaded when needed: they read the descriptions of the API's routes, which the scheduler needs for nothing else.
  const [{ publish }, { openTarget }] = await Promise.all([import('./publish.ts'), import('./target.ts')])
  const { s3, keepDays } = config.publish
  const outcome = await publish({
    ...{ db, registry: snapshot(registry), target: openTarget(db, to, s3), keepDays, log },
    ...{ publicUrl: config.api.publicUrl, now, signal },
    ...(threads === undefined ? {} : { threads }),
  })
  const value = JSON.stringify({ written: outcome.written.length, rows: outcome.rows, bytes: outcome.bytes })
  const written_at = new Date(now()).toISOString()
  await db.insert({ table: 'job_state', rows: [{ job: STATE_JOB, name: to, value, written_at }] })
  log.info({ to, written: outcome.written.length, unchanged: outcome.unchanged, bytes: outcome.bytes }, 'published')
  return outcome
}

/** Publishes to a target if the publication of the day is due. Returns whether it did. */
export async function publishDaily(options: DailyOptions, to: string, signal: AbortSignal): Promise<boolean> {
  if (!(await isDue(options.db, to, options.now()))) return false
  await publishNow(options, to, signal)
  return true
}

/** Publishes to a target once a day until it is stopped. Several processes publish once. */
export function startPublishing(options: DailyOptions, to: string): Ticks {
  const { log } = options
  const stopping = new AbortController()
  const tick = async () => {
    try {
      await publishDaily(options, to, stopping.signal)
    } catch (error) {
      if (!stopping.signal.aborted) log.warn({ to, reason: toReason(error) }, 'publication failed and will be retried')
    }
  }
  const ticks = startTicks(TICK, tick, log)
  const first = tick()
  return {
    stop: async () => {
      stopping.abort(new Error('the process is stopping'))
      await ticks.stop()
      await first
    },
  }
}
