import type { Redis } from 'ioredis'
import type { Registry as MetricRegistry } from 'prom-client'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { toReason } from '../../shared/errors.ts'
import { toBucketStart } from '../../shared/intervals.ts'
import { isSlotEnqueued } from '../../shared/queue/queues.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import {
  type Database,
  FRESHNESS_STATES,
  type FreshnessState,
  readNewest,
  toFreshnessState,
  toLagSeconds,
} from '../../shared/store/store.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { createGauge, METRICS } from '../../shared/telemetry/metric-list.ts'
import { createOutageLog } from '../../shared/telemetry/outage-log.ts'
import { type CompletenessWatch, createCompletenessWatch } from './completeness-watch.ts'
import { startTicks, type Ticks } from './ticks.ts'

interface WatchdogOptions {
  readonly db: Database
  readonly redis: Redis
  readonly prefix: string
  readonly datasets: readonly DatasetFacts[]
  /** The entities that must have data. */
  readonly records: Registry
  readonly registry: MetricRegistry
  readonly log: Logger
  /** Unix milliseconds. */
  readonly now: () => number
}

export interface Watchdog {
  /**
   * Checks every dataset's newest value and coverage. Logs datasets that became late, stale or fresh, and entities that
   * became overdue.
   */
  check(): Promise<void>
}

/** State of an empty dataset that no provider serves, for example because a key is missing. Not urgent. */
const UNSERVED = 'unserved'

/** Interval of the checks of stored data and queues. */
const WATCH = '*/15 * * * * *'

/** Runs the checks periodically until stopped. */
export function startWatch(watchers: readonly { check(): Promise<void> }[], log: Logger): Ticks {
  return startTicks(WATCH, async () => void (await Promise.all(watchers.map((watcher) => watcher.check()))), log)
}

/**
 * Watches the age of the stored data, independent of queues and jobs. Schedulers watch all datasets, workers those that
 * they collect, so each detects when the other has stopped.
 */
export function createWatchdog(options: WatchdogOptions): Watchdog {
  const { db, datasets, log, now } = options
  const newest = new Map<string, number | null>()
  const reported = new Map<string, FreshnessState>()
  const completeness = createCompletenessWatch(options)
  const outage = createOutageLog(log, 'error')
  createFreshnessGauges(newest, completeness, options)

  async function checkDataset(dataset: DatasetFacts): Promise<void> {
    const { name, cadence } = dataset
    try {
      newest.set(name, await readNewest(db, dataset))
      outage.works(name)
    } catch (error) {
      outage.failed(name, { dataset: name, reason: toReason(error) }, 'freshness cannot be read')
    }
    const seen = newest.get(name)
    if (seen === undefined) return
    const lagSeconds = toLagSeconds(seen, now())
    const state = toFreshnessState(lagSeconds, cadence)
    const before = reported.get(name) ?? 'fresh'
    reported.set(name, state)
    if (state === before) return
    if (state === 'late' || state === 'stale') await reportOld(dataset, { state, lagSeconds }, options)
    else if (state === 'fresh' && before !== 'empty')
      log.info({ dataset: name, state, lagSeconds }, 'data is fresh again')
  }

  return { check: async () => void (await Promise.all([completeness.check(), ...datasets.map(checkDataset)])) }
}

/**
 * Exports lag and state of each dataset. Both are computed on each scrape from the newest value seen (Unix milliseconds
 * by dataset). A lag therefore grows between checks and while ClickHouse is unavailable.
 */
function createFreshnessGauges(
  newest: ReadonlyMap<string, number | null>,
  completeness: CompletenessWatch,
  { datasets, registry, now }: WatchdogOptions,
): void {
  createGauge(METRICS.datasetLag, registry, (gauge) => {
    for (const { name, cadence } of datasets) {
      const lag = toLagSeconds(newest.get(name) ?? null, now())
      if (lag !== null) gauge.set({ dataset: name, cadence }, lag)
    }
  })
  createGauge(METRICS.datasetState, registry, (gauge) => {
    for (const { name, cadence } of datasets) {
      const seen = newest.get(name)
      if (seen === undefined) continue
      const fresh = toFreshnessState(toLagSeconds(seen, now()), cadence, completeness.countOverdue(name))
      // Only for empty datasets: if a dataset has data but no longer a provider, its key was lost, which is urgent.
      const current = fresh === 'empty' && completeness.isUnserved(name) ? UNSERVED : fresh
      for (const state of [...FRESHNESS_STATES, UNSERVED])
        gauge.set({ dataset: name, state }, state === current ? 1 : 0)
    }
  })
}

/** Logs where to look: at the schedulers if the slot was not enqueued, or else at the workers and providers. */
async function reportOld(
  { name, cadence }: DatasetFacts,
  { state, lagSeconds }: { state: FreshnessState; lagSeconds: number | null },
  { redis, prefix, log, now }: WatchdogOptions,
): Promise<void> {
  const fields = { dataset: name, state, lagSeconds }
  try {
    const isUnscheduled = !(await isSlotEnqueued(redis, prefix, name, toBucketStart(now(), cadence)))
    const where = isUnscheduled
      ? 'its slots are not enqueued: does a scheduler run?'
      : 'its newest slot is enqueued but not stored'
    log.warn(fields, `data is ${state}: ${where}`)
  } catch (error) {
    log.warn({ ...fields, reason: toReason(error) }, `data is ${state}: the queue cannot be read from Redis`)
  }
}
