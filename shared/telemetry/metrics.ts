import cluster from 'node:cluster'
import { AggregatorRegistry, collectDefaultMetrics, Registry } from 'prom-client'
import { z } from 'zod'

/**
 * Gauges of prom-client with a counter's suffix, which Prometheus' linter rejects. Each has a twin without the suffix
 * and with the same values by type.
 */
const NAMED_LIKE_COUNTERS = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
] as const

/** The metrics of one process, including runtime metrics: event-loop lag, memory, CPU. */
export function createMetrics(process: string): Registry {
  const registry = new Registry()
  registry.setDefaultLabels({ process })
  collectDefaultMetrics({ register: registry })
  for (const name of NAMED_LIKE_COUNTERS) registry.removeSingleMetric(name)
  return registry
}

/** Metrics of an operations port: of one process, or aggregated over several. */
export interface ShownMetrics {
  readonly contentType: string
  metrics(): Promise<string>
}

/** Lets the parent process read this process's metrics. */
export function shareMetrics(registry: Registry): void {
  AggregatorRegistry.setRegistries([registry])
  // The constructor registers the listener that responds to the parent.
  new AggregatorRegistry()
}

/** A process's response with its metrics: one list per registry. */
const metricsResponse = z.object({
  type: z.literal('prom-client:getMetricsRes'),
  metrics: z.array(z.array(z.looseObject({ type: z.string() }))),
})

type ProcessMetrics = z.infer<typeof metricsResponse>['metrics'][number]

/** Monotonic metrics. The gauges of an exited process are meaningless. */
const GROWS = new Set(['counter', 'histogram'])

/**
 * Aggregates the metrics of all child processes. The last counters of an exited process stay in the sum: a decreasing
 * counter would look like a restart, and all other counts would look new.
 */
export function createSharedMetrics(): ShownMetrics {
  const running = new Map<number, ProcessMetrics>()
  let ended: object[] = []
  cluster.on('message', ({ id }, message) => {
    const { data } = metricsResponse.safeParse(message)
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
      // Resolves when all processes have responded; the listener above has received each response before.
      await all.clusterMetrics()
      return AggregatorRegistry.aggregate([...running.values(), ended]).metrics()
    },
    contentType: all.contentType,
  }
}
