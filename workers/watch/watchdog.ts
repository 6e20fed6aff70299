import type { Redis } from 'ioredis'
import type { Registry as MetricRegistry } from 'prom-client'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import { toReason } from '../../shared/errors.ts'
import { toBucketStart } from '../../shared/intervals.ts'
import { isSlotEnqueued } from '../../shared/queue/queues.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import {
  FRESHNESS_STATES,
  type FreshnessState,
  readNewest,
  toFreshnessState,
  toLagSeconds,
} from '../../shared/store/freshness.ts'
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
  /** Whom data is expected of. */
  readonly records: Registry
  readonly registry: MetricRegistry
  readonly log: Logger
  /** Unix milliseconds. */
  readonly now: () => number
}

export interface Watchdog {
  /**
   * Looks at every dataset's newest datum and at its coverage, and logs those that have become late or stale, those that
   * are fresh again, and those that have lost entities.
   */
  check(): Promise<void>
}

/** The state of a dataset without data that nobody serves, as without the key that it needs: nobody has to hurry. */
const UNSERVED = 'unserved'

/** How often stored data and queues are looked at. */
const WATCH = '*/15 * * * * *'

/** Checks again and again until it is stopped. */
export function startWatch(watchers: readonly { check(): Promise<void> }[], log: Logger): Ticks {
  return startTicks(WATCH, async () => void (await Promise.all(watchers.map((watcher) => watcher.check()))), log)
}

/**
 * Watches how old the stored data is, whatever queues and jobs report. Schedulers watch all datasets, workers those
 * that they collect, so that each notices when the other has stopped.
 */
export function createWatchdog(options: WatchdogOptions): Watchdog {
  const { db, datasets, log, now } = options
  const newest = new Map<string, number | null>()
  const told = new Map<string, FreshnessState>()
  const completeness = createCompletenessWatch(options)
  const outage = createOutageLog(log, 'error')
  createFreshnessGauges(newest, completeness, options)

  async function look(dataset: DatasetFacts): Promise<void> {
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
    const before = told.get(name) ?? 'fresh'
    told.set(name, state)
    if (state === before) return
    if (state === 'late' || state === 'stale') await tellOld(dataset, { state, lagSeconds }, options)
    else if (state === 'fresh' && before !== 'empty')
      log.info({ dataset: name, state, lagSeconds }, 'data is fresh again')
  }

  return { check: async () => void (await Promise.all([completeness.check(), ...datasets.map(look)])) }
}

/**
 * Lag and state of each dataset, computed whenever the metrics are read, from the newest datum that was seen (Unix
 * milliseconds by dataset). So a lag grows between checks, and while ClickHouse does not answer.
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
      const fresh = toFreshnessState(toLagSeconds(seen, now()), cadence, completeness.lost(name))
      // What had data and is served by nobody any more has lost its key.
      const current = fresh === 'empty' && completeness.isUnserved(name) ? UNSERVED : fresh
      for (const state of [...FRESHNESS_STATES, UNSERVED])
        gauge.set({ dataset: name, state }, state === current ? 1 : 0)
    }
  })
}

/** Logs where to look: at the schedulers when the slot was not enqueued, at workers and providers when it was. */
async function tellOld(
  { name, cadence }: DatasetFacts,
  { state, lagSeconds }: { state: FreshnessState; lagSeconds: number | null },
  { redis, prefix, log, now }: WatchdogOptions,
): Promise<void> {
  const told = { dataset: name, state, lagSeconds }
  try {
    const isUnscheduled = !(await isSlotEnqueued(redis, prefix, name, toBucketStart(now(), cadence)))
    const where = isUnscheduled
      ? 'its slots are not enqueued: does a scheduler run?'
      : 'its newest slot is enqueued but not stored'
    log.warn(told, `data is ${state}: ${where}`)
  } catch (error) {
    log.warn({ ...told, reason: toReason(error) }, `data is ${state}: Redis does not tell what is enqueued`)
  }
}
