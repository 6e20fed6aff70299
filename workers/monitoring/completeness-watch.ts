import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { toReason } from '../../shared/errors.ts'
import {
  type Completeness,
  type MissingCounts,
  type OverdueEntity,
  openLedger,
  openLedgers,
} from '../../shared/ledger/ledger.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { type Database, type FailingProviders, readFailing } from '../../shared/store/store.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { createGauge, METRICS } from '../../shared/telemetry/metric-list.ts'
import { createOutageLog } from '../../shared/telemetry/outage-log.ts'

interface CompletenessOptions {
  readonly db: Database
  readonly datasets: readonly DatasetFacts[]
  /** The entities that must have data. */
  readonly records: Registry
  readonly registry: Parameters<typeof createGauge>[1]
  readonly log: Logger
  /** Unix milliseconds. */
  readonly now: () => number
}

export interface CompletenessWatch {
  /** Recounts, at most once a minute, and logs which entities of a dataset became overdue or recovered. */
  check(): Promise<void>
  /** Returns the number of overdue entities of a dataset. */
  countOverdue(dataset: string): number
  /** Returns whether no provider serves any entity of the dataset. */
  isUnserved(dataset: string): boolean
}

/** Minimum interval: counting all of history costs more than reading the newest time. */
const EVERY_MS = 60_000

/** Result of one count. */
interface Found {
  readonly completeness: ReadonlyMap<string, Completeness>
  readonly missing: ReadonlyMap<string, MissingCounts>
  readonly failing: ReadonlyMap<string, FailingProviders>
}

/** Reports the coverage of each dataset as metrics and in the log. */
export function createCompletenessWatch(options: CompletenessOptions): CompletenessWatch {
  const { db, datasets, records, log, now } = options
  let found: Found | undefined
  let countedAt = Number.NEGATIVE_INFINITY
  const reported = new Map<string, string>()
  const outage = createOutageLog(log, 'error')
  createGauges(() => found, options)
  return {
    check: async () => {
      const sinceCounted = now() - countedAt
      // Negative if the clock was ahead and was set back. Waiting for it to catch up could take hours.
      if (sinceCounted >= 0 && sinceCounted < EVERY_MS) return
      countedAt = now()
      try {
        found = await count({ db, datasets, records, now: countedAt })
        outage.works('completeness')
      } catch (error) {
        outage.failed('completeness', { reason: toReason(error) }, 'completeness cannot be read')
        return
      }
      for (const { name: dataset, entities } of datasets) {
        const overdue = found.completeness.get(dataset)?.overdue ?? []
        // If all entities are overdue, the watchdog reports the whole dataset as late.
        const there = entities(records).filter((entity) => isThereAt(entity, countedAt))
        if (overdue.length > 0 && overdue.length === there.length) continue
        const names = overdue.map(({ entity }) => entity.id).join()
        if (names !== (reported.get(dataset) ?? '')) reportOverdue(dataset, overdue, log)
        reported.set(dataset, names)
      }
    },
    countOverdue: (dataset) => found?.completeness.get(dataset)?.overdue.length ?? 0,
    isUnserved: (dataset) => found?.completeness.get(dataset)?.isUnserved ?? false,
  }
}

async function count({
  db,
  datasets,
  records,
  now,
}: Pick<CompletenessOptions, 'db' | 'datasets' | 'records'> & { readonly now: number }): Promise<Found> {
  const [completeness, failing] = await Promise.all([
    openLedgers(db, datasets).completeness(records, now),
    readFailing(db),
  ])
  const missing = new Map<string, MissingCounts>()
  for (const dataset of datasets) {
    const lacking = completeness.get(dataset.name)?.lacking ?? []
    missing.set(dataset.name, await openLedger(db, dataset).countMissing(lacking, now))
  }
  return { completeness, missing, failing }
}

const MOST_NAMED = 10
const MOST_REASONS = 3

function reportOverdue(dataset: string, overdue: readonly OverdueEntity[], log: Logger): void {
  if (overdue.length === 0) {
    log.info({ dataset }, 'no entities are overdue any more')
    return
  }
  const reasons = [...new Set(overdue.map(({ reason }) => reason ?? 'unknown reason'))].slice(0, MOST_REASONS)
  const entities = overdue.slice(0, MOST_NAMED).map(({ entity }) => entity.name)
  log.warn(
    { dataset, overdue: overdue.length, entities, reasons },
    'entities are overdue: their newest slots are not stored',
  )
}

function createGauges(toFound: () => Found | undefined, { datasets, registry, now }: CompletenessOptions): void {
  createGauge(METRICS.datasetComplete, registry, (gauge) => {
    for (const [dataset, { complete }] of toFound()?.completeness ?? []) gauge.set({ dataset }, complete)
  })
  createGauge(METRICS.datasetOverdue, registry, (gauge) => {
    for (const [dataset, { overdue }] of toFound()?.completeness ?? []) gauge.set({ dataset }, overdue.length)
  })
  createGauge(METRICS.datasetMissing, registry, (gauge) => {
    for (const [dataset, counts] of toFound()?.missing ?? [])
      for (const [state, buckets] of Object.entries(counts)) gauge.set({ dataset, state }, buckets)
  })
  createGauge(METRICS.providerFailing, registry, (gauge) => {
    // Removes providers that have recovered.
    gauge.reset()
    for (const { name: dataset, cadence } of datasets)
      for (const [provider, { since }] of Object.entries(toFound()?.failing.get(dataset) ?? {}))
        gauge.set({ dataset, cadence, provider }, Math.max(0, (now() - Date.parse(since)) / 1000))
  })
}
