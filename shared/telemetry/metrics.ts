import { collectDefaultMetrics, Registry } from 'prom-client'

/** The metrics of one process, with those of the runtime itself: event-loop lag, memory, CPU. */
export function createMetrics(process: string): Registry {
  const registry = new Registry()
  registry.setDefaultLabels({ process })
  collectDefaultMetrics({ register: registry })
  return registry
}
