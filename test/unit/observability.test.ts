import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createCounter, createGauge, createHistogram, METRICS } from '../../shared/telemetry/metric-list.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { OF_EVERY_TARGET, readMetricNames, SUFFIXES, toUses } from '../support/metric-uses.ts'

const root = join(import.meta.dirname, '../..')
const read = (file: string) => readFileSync(join(root, 'observability', file), 'utf8')

const dashboard = z.object({
  panels: z.array(z.object({ targets: z.array(z.object({ expr: z.string() })).default([]) })),
})

const expressions = {
  alerts: [...read('alerts.yml').matchAll(/^ +expr: (.+)$/gm)].map(([, line = '']) => line),
  dashboard: dashboard
    .parse(JSON.parse(read('grafana/dao-data.json')))
    .panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
}

describe.each(Object.entries(expressions))('observability: the %s', (_name, list) => {
  it('use existing metrics and labels', async () => {
    expect(list.length).toBeGreaterThan(10)
    const existing = await readMetricNames()
    for (const expression of list) {
      const { metrics, labels } = toUses(expression)
      expect(metrics, expression).not.toEqual([])
      expect([...existing.keys()], expression).toEqual(expect.arrayContaining(metrics))
      const have = [...metrics.flatMap((name) => existing.get(name) ?? []), ...OF_EVERY_TARGET]
      expect(have, expression).toEqual(expect.arrayContaining(labels))
    }
  })
})

describe('METRICS', () => {
  it('contains only metrics that are on the dashboard', () => {
    const shown = new Set(expressions.dashboard.flatMap((expression) => toUses(expression).metrics))
    const isShown = ({ name, kind }: (typeof METRICS)[keyof typeof METRICS]) =>
      SUFFIXES[kind].some((suffix) => shown.has(name + suffix))
    expect(Object.values(METRICS).flatMap((metric) => (isShown(metric) ? [] : [metric.name]))).toEqual([])
  })
})

/** Returns the output of `/metrics` with a sample of each metric. */
async function writeMetrics(): Promise<string> {
  const registry = createMetrics('test')
  for (const metric of Object.values(METRICS)) {
    const labels = Object.fromEntries(metric.labels.map((label) => [label, 'a']))
    if (metric.kind === 'counter') createCounter<readonly string[]>(metric, registry).inc(labels)
    else if (metric.kind === 'gauge') createGauge<readonly string[]>(metric, registry).set(labels, 1)
    else createHistogram<readonly string[]>(metric, registry).observe(labels, 1)
  }
  return registry.metrics()
}

/** Returns the findings of the rules of `promtool check metrics` about names, types and help texts. */
function lint(text: string): string[] {
  const helps = new Map([...text.matchAll(/^# HELP (\S+) ?(.*)$/gm)].map(([, name = '', help = '']) => [name, help]))
  return [...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)].flatMap(([, name = '', type = '']) => {
    const wrong = {
      'no help text': (helps.get(name) ?? '').trim() === '',
      'a counter without "_total"': type === 'counter' && !name.endsWith('_total'),
      '"_total", and no counter': type !== 'counter' && name.endsWith('_total'),
      'a suffix of histograms': /_(bucket|sum|count)$/.test(name),
      'its type in its name': new RegExp(`(^|_)${type}(_|$)`).test(name),
      'no base unit': /_(ms|millis|milliseconds|minutes|hours|days|kb|mb|percent)(_|$)/.test(name),
      'capitals or colons': /[A-Z:]/.test(name),
    }
    return Object.entries(wrong).flatMap(([why, is]) => (is ? [`${name}: ${why}`] : []))
  })
}

/** Runs Prometheus' own tool. If it is not installed, logs a warning and returns no findings. */
function promtool(args: readonly string[], input = ''): string {
  const { error, stdout, stderr, status } = spawnSync('promtool', args, { cwd: root, input, encoding: 'utf8' })
  if (error !== undefined && 'code' in error && error.code === 'ENOENT') {
    console.warn(`promtool is not installed: promtool ${args.join(' ')} was not run`)
    return ''
  }
  if (error !== undefined) throw error
  return status === 0 ? '' : `${stdout}${stderr}`
}

describe('metrics of a process', () => {
  it('follow the naming rules of Prometheus', async () => {
    const text = await writeMetrics()
    expect(lint(text)).toEqual([])
    expect(promtool(['check', 'metrics'], text)).toBe('')
  })

  it('are checked by a linter that finds violations', () => {
    const text = '# HELP active_total Help.\n# TYPE active_total gauge\n# HELP wait_ms\n# TYPE wait_ms counter\n'
    expect(lint(text)).toEqual([
      'active_total: "_total", and no counter',
      'wait_ms: no help text',
      'wait_ms: a counter without "_total"',
      'wait_ms: no base unit',
    ])
  })
})

describe('Prometheus configuration', () => {
  const compose = readFileSync(join(root, 'docker-compose.yml'), 'utf8')
  const workers = [...compose.matchAll(/^ {2}(worker-\w+):$/gm)].map(([, name]) => name)

  it('scrapes every worker of the compose file, and alerts for each missing one', () => {
    expect(workers.length).toBeGreaterThan(0)
    expect(read('prometheus.yml')).toContain(`names: [${workers.join(', ')}]`)
    const absent = [...read('alerts.yml').matchAll(/absent\(up\{job="worker", service="([\w-]+)"\}\)/g)]
    expect(absent.map(([, service]) => service)).toEqual(workers)
  })

  it('is valid, and its alert rules fire for a missing process', () => {
    expect(promtool(['check', 'config', '--syntax-only', 'observability/prometheus.yml'])).toBe('')
    expect(promtool(['check', 'rules', 'observability/alerts.yml'])).toBe('')
    expect(promtool(['test', 'rules', 'test/fixtures/alerts.test.yml'])).toBe('')
  })
})
