import type { Registry } from 'prom-client'
import type { Database } from '../shared/clickhouse.ts'
import type { DatasetFacts } from '../shared/datasets/list.ts'
import { toReason } from '../shared/errors.ts'
import {
  FRESHNESS_STATES,
  type FreshnessState,
  readNewest,
  toFreshnessState,
  toLagSeconds,
} from '../shared/freshness.ts'
import type { Logger } from '../shared/log.ts'
import { createGauge, METRICS } from '../shared/metric-list.ts'

interface WatchdogOptions {
  readonly db: Database
  readonly datasets: readonly DatasetFacts[]
  readonly registry: Registry
  readonly log: Logger
  /** Unix milliseconds. */
  readonly now: () => number
}

export interface Watchdog {
  /** Looks at every dataset's newest datum; tells of those that turned late or stale, and of those that are fresh again. */
  check(): Promise<void>
}

/**
 * Watches how old the stored data is, whatever queues and jobs say of themselves. Between checks, and while ClickHouse
 * does not answer, the gauges go on from the newest datum that was seen: a lag never stands still.
 */
export function createWatchdog({ db, datasets, registry, log, now }: WatchdogOptions): Watchdog {
  const newest = new Map<string, number | null>()
  const told = new Map<string, FreshnessState>()

  createGauge(METRICS.datasetLag, registry, async (gauge) => {
    for (const { name, cadence } of datasets) {
      const lag = toLagSeconds(newest.get(name) ?? null, now())
      if (lag !== null) gauge.set({ dataset: name, cadence }, lag)
    }
  })
  createGauge(METRICS.datasetState, registry, async (gauge) => {
    for (const { name, cadence } of datasets) {
      const seen = newest.get(name)
      if (seen === undefined) continue
      const current = toFreshnessState(toLagSeconds(seen, now()), cadence)
      for (const state of FRESHNESS_STATES) gauge.set({ dataset: name, state }, state === current ? 1 : 0)
    }
  })

  async function look(dataset: DatasetFacts): Promise<void> {
    const { name, cadence } = dataset
    try {
      newest.set(name, await readNewest(db, dataset))
    } catch (error) {
      log.error({ dataset: name, reason: toReason(error) }, 'freshness cannot be read')
    }
    const seen = newest.get(name)
    if (seen === undefined) return
    const lagSeconds = toLagSeconds(seen, now())
    const state = toFreshnessState(lagSeconds, cadence)
    const before = told.get(name) ?? 'fresh'
    told.set(name, state)
    if (state === before) return
    if (state === 'late' || state === 'stale') log.warn({ dataset: name, state, lagSeconds }, `data is ${state}`)
    else if (state === 'fresh' && before !== 'empty')
      log.info({ dataset: name, state, lagSeconds }, 'data is fresh again')
  }

  return { check: async () => void (await Promise.all(datasets.map(look))) }
}
