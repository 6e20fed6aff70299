import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { METRICS } from '../../shared/telemetry/metric-list.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'

const root = join(import.meta.dirname, '../..')
const read = (file: string) => readFileSync(join(root, 'observability', file), 'utf8')

const SUFFIXES = { counter: [''], gauge: [''], histogram: ['_bucket', '_sum', '_count'] } as const

/** Metrics by name with their labels: the declared ones, those of the runtime, and what Prometheus says of a target. */
async function readKnown(): Promise<Map<string, readonly string[]>> {
  const known = new Map<string, readonly string[]>([['up', []]])
  for (const { kind, name, labels } of Object.values(METRICS)) {
    for (const suffix of SUFFIXES[kind]) known.set(name + suffix, suffix === '_bucket' ? [...labels, 'le'] : labels)
  }
  for (const { name } of await createMetrics('test').getMetricsAsJSON()) known.set(name, [])
  return known
}

const OF_EVERY_TARGET = ['job', 'instance', 'process']

/** The metrics of a PromQL expression, and the labels that it selects or groups by. */
function toUses(expression: string): { metrics: string[]; labels: string[] } {
  const plain = expression.replace(/\[[^\]]*\]/g, '')
  const groups = [...plain.matchAll(/\bby\s*\(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/,\s*/))
  const selectors = [...plain.matchAll(/\{([^}]*)\}/g)].flatMap(([, selector = '']) =>
    [...selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label),
  )
  const words = plain.replace(/\bby\s*\([^)]*\)/g, '').replace(/\{[^}]*\}/g, '')
  // A name before a bracket is a function's or an aggregation's; "by" may stand between the two.
  const metrics = [...words.matchAll(/\b[a-z_]\w*\b(?!\s*\()/g)].map(([name]) => name)
  return { metrics, labels: [...groups, ...selectors] }
}

const dashboard = z.object({
  panels: z.array(z.object({ targets: z.array(z.object({ expr: z.string() })).default([]) })),
})

const expressions = {
  alerts: [...read('alerts.yml').matchAll(/^ +expr: (.+)$/gm)].map(([, line = '']) => line),
  dashboard: dashboard
    .parse(JSON.parse(read('grafana/dao-data.json')))
    .panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
}

describe.each(Object.entries(expressions))('the %s', (_name, list) => {
  it('use metrics and labels that exist', async () => {
    expect(list.length).toBeGreaterThan(10)
    const known = await readKnown()
    for (const expression of list) {
      const { metrics, labels } = toUses(expression)
      expect(metrics, expression).not.toEqual([])
      expect([...known.keys()], expression).toEqual(expect.arrayContaining(metrics))
      const have = [...metrics.flatMap((name) => known.get(name) ?? []), ...OF_EVERY_TARGET]
      expect(have, expression).toEqual(expect.arrayContaining(labels))
    }
  })
})

describe('every metric', () => {
  it('is on the dashboard', () => {
    const shown = new Set(expressions.dashboard.flatMap((expression) => toUses(expression).metrics))
    const isShown = ({ name, kind }: (typeof METRICS)[keyof typeof METRICS]) =>
      SUFFIXES[kind].some((suffix) => shown.has(name + suffix))
    expect(Object.values(METRICS).flatMap((metric) => (isShown(metric) ? [] : [metric.name]))).toEqual([])
  })
})

describe('prometheus', () => {
  it('scrapes every worker that the compose file runs', () => {
    const compose = readFileSync(join(root, 'docker-compose.yml'), 'utf8')
    const workers = [...compose.matchAll(/^ {2}(worker-\w+):$/gm)].map(([, name]) => name)
    expect(workers.length).toBeGreaterThan(0)
    expect(read('prometheus.yml')).toContain(`names: [${workers.join(', ')}]`)
  })
})
