import type { Registry } from 'prom-client'
import { createCounter, METRICS } from '../../shared/telemetry/metric-list.ts'

/** Dashboards and alerts know a missed slot by the label `lost`. */
const LABELS = { enqueued: 'enqueued', missed: 'lost' } as const

/** Counters of a scheduler. */
export interface SlotMetrics {
  slots(dataset: string, outcome: keyof typeof LABELS, count: number): void
  failed(dataset: string): void
}

/** Creates the slot metrics. Counters of every dataset exist from the start. */
export function createSlotMetrics(datasets: readonly string[], registry: Registry): SlotMetrics {
  const slots = createCounter(METRICS.slots, registry)
  const failures = createCounter(METRICS.tickFailures, registry)
  for (const dataset of datasets) {
    for (const outcome of Object.values(LABELS)) slots.inc({ dataset, outcome }, 0)
    failures.inc({ dataset }, 0)
  }
  return {
    slots: (dataset, outcome, count) => slots.inc({ dataset, outcome: LABELS[outcome] }, count),
    failed: (dataset) => failures.inc({ dataset }),
  }
}
