import { AggregatorRegistry, collectDefaultMetrics, Registry } from 'prom-client'

/**
 * Gauges of prom-client that are named like counters, which Prometheus' own linter refuses. Each has a twin without the
 * ending that tells the same by type.
 */
const NAMED_LIKE_COUNTERS = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
] as const

/** The metrics of one process, with those of the runtime itself: event-loop lag, memory, CPU. */
export function createMetrics(process: string): Registry {
  const registry = new Registry()
  registry.setDefaultLabels({ process })
  collectDefaultMetrics({ register: registry })
  for (const name of NAMED_LIKE_COUNTERS) registry.removeSingleMetric(name)
  return registry
}

/** What an operations port shows: one process's metrics, or those of several added up. */
export interface ShownMetrics {
  readonly contentType: string
  metrics(): Promise<string>
}

/** Lets the process that started this one read its metrics. */
export function shareMetrics(registry: Registry): void {
  AggregatorRegistry.setRegistries([registry])
  // It answers from its making on.
  new AggregatorRegistry()
}

/** The metrics of all processes that this one has started, added up; of one that has ended, none. */
export function createSharedMetrics(): ShownMetrics {
  const all = new AggregatorRegistry()
  return { metrics: () => all.clusterMetrics(), contentType: all.contentType }
}
