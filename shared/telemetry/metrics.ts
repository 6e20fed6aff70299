import cluster from 'node:cluster'
import { AggregatorRegistry, collectDefaultMetrics, Registry } from 'prom-client'
import { z } from 'zod'

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

/** How a process answers who asks for its metrics: for each of its registries a list of them. */
const told = z.object({
  type: z.literal('prom-client:getMetricsRes'),
  metrics: z.array(z.array(z.looseObject({ type: z.string() }))),
})

type Told = z.infer<typeof told>['metrics'][number]

/** What only grows; a gauge of a process that has ended says nothing any more. */
const GROWS = new Set(['counter', 'histogram'])

/**
 * The metrics of all processes that this one has started, added up. What one that has ended had counted when it was asked
 * last stays: a counter that fell would look like a restart, and all others' counts like new ones.
 */
export function createSharedMetrics(): ShownMetrics {
  const running = new Map<number, Told>()
  let ended: object[] = []
  cluster.on('message', ({ id }, message) => {
    const { data } = told.safeParse(message)
    if (data !== undefined) running.set(id, data.metrics.flat())
  })
  cluster.on('exit', ({ id }) => {
    const last = (running.get(id) ?? []).filter(({ type }) => GROWS.has(type))
    ended = AggregatorRegistry.aggregate([ended, last]).getMetricsAsArray()
    running.delete(id)
  })
  const all = new AggregatorRegistry()
  return {
    metrics: async () => {
      // When all have answered, which is told before to whom listens above.
      await all.clusterMetrics()
      return AggregatorRegistry.aggregate([...running.values(), ended]).metrics()
    },
    contentType: all.contentType,
  }
}
