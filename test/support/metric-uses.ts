import { METRICS } from '../../shared/telemetry/metric-list.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'

/** The suffixes of the time series of a metric, by kind. */
export const SUFFIXES = { counter: [''], gauge: [''], histogram: ['_bucket', '_sum', '_count'] } as const

/** Metrics by name with their labels: declared metrics, runtime metrics, and those that Prometheus adds per target. */
export async function readMetricNames(): Promise<Map<string, readonly string[]>> {
  const existing = new Map<string, readonly string[]>([['up', []]])
  for (const { kind, name, labels } of Object.values(METRICS)) {
    for (const suffix of SUFFIXES[kind]) existing.set(name + suffix, suffix === '_bucket' ? [...labels, 'le'] : labels)
  }
  for (const { name } of await createMetrics('test').getMetricsAsJSON()) existing.set(name, [])
  return existing
}

/** Labels that Prometheus adds. */
export const OF_EVERY_TARGET = ['job', 'instance', 'process', 'service']

/** The metrics of a PromQL expression, and the labels that it selects or groups by. */
export function toUses(expression: string): { metrics: string[]; labels: string[] } {
  const plain = expression.replace(/\[[^\]]*\]/g, '').replace(/\b(and|or|unless|offset)\b/g, ' ')
  const groups = [...plain.matchAll(/\b(?:by|on)\s*\(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/,\s*/))
  const selectors = [...plain.matchAll(/\{([^}]*)\}/g)].flatMap(([, selector = '']) =>
    [...selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label),
  )
  const words = plain.replace(/\b(?:by|on)\s*\([^)]*\)/g, '').replace(/\{[^}]*\}/g, '')
  // A name before a bracket is a function or an aggregation; "by" may come between them.
  const metrics = [...words.matchAll(/\b(?!or\b)[a-z_]\w*\b(?!\s*\()/g)].map(([name]) => name)
  return { metrics, labels: [...groups, ...selectors] }
}
