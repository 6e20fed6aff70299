import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments, parse as parseYaml } from 'yaml'
import { z } from 'zod'
import { toOpenApi } from '../../api/openapi/document.ts'
import { toDocumentedMembers } from '../../api/openapi/members.ts'
import type { Operation } from '../../api/openapi/shape.ts'
import { routes } from '../../api/routes.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { readMetricNames, toUses } from '../support/metric-uses.ts'

const FOLDER = join(import.meta.dirname, '../../integrations')
const read = (file: string) => readFileSync(join(FOLDER, file), 'utf8')
const document = toOpenApi([...routes])

/** The operation at a path with a query whose parameters it has; throws for any other. */
function findOperation(address: string): Operation {
  const url = new URL(address, 'http://127.0.0.1:3000')
  const operation = document.paths[url.pathname]?.get
  if (operation === undefined) throw new Error(`${address}: there is no such path`)
  for (const [name, value] of url.searchParams) {
    const schema = operation.parameters.find((parameter) => parameter.name === name)?.schema
    if (schema === undefined) throw new Error(`${address}: there is no parameter ${name}`)
    if (schema.enum !== undefined && !schema.enum.includes(value))
      throw new Error(`${address}: ${name} is not ${value}`)
  }
  return operation
}

/** The members of an operation's records, without the steps through lists: `financialData.price`. */
function toMembers({ responses }: Operation): readonly string[] {
  const [content] = Object.values(responses[200].content)
  return toDocumentedMembers(document, content?.schema ?? {}).map(({ path }) => path)
}

describe('Grafana dashboard', () => {
  const target = z.object({
    datasource: z.object({ type: z.literal('yesoreyeram-infinity-datasource'), uid: z.string() }),
    url: z.string().startsWith('/data/'),
    root_selector: z.string(),
    columns: z.array(
      z.object({ selector: z.string(), text: z.string(), type: z.enum(['string', 'number', 'timestamp']) }),
    ),
  })
  const dashboard = z.object({
    uid: z.string(),
    panels: z.array(z.object({ id: z.int(), title: z.string(), type: z.string(), targets: z.array(target).length(1) })),
    templating: z.object({ list: z.array(z.object({ name: z.string() })) }),
  })
  const { panels, templating } = dashboard.parse(JSON.parse(read('grafana/provisioning/dashboards/dao-data.json')))
  const targets = panels.flatMap((panel) => panel.targets)

  it('requests paths with their parameters, and columns that their records have', () => {
    expect(targets.length).toBeGreaterThan(5)
    for (const { url, root_selector, columns } of targets) {
      const members = toMembers(findOperation(url.replaceAll(/\$\{[^}]*\}/g, '1767225600000')))
      const prefix = root_selector === '' ? '' : `${root_selector}[].`
      for (const { selector } of columns) expect(members, url).toContain(prefix + selector)
    }
  })

  it('uses its variables and the provisioned data source', () => {
    const used = [...JSON.stringify(panels).matchAll(/\$\{(\w+)/g)].map(([, name]) => name)
    const known = ['__from', '__to', ...templating.list.map(({ name }) => name)]
    expect([...new Set(used)].sort()).toEqual([...known].sort())
    const provisioned = z
      .object({ datasources: z.array(z.object({ uid: z.string(), type: z.string() })) })
      .parse(parseYaml(read('grafana/provisioning/datasources/dao-data.yml')))
    const { uid, type } = provisioned.datasources[0] ?? {}
    for (const { datasource } of targets) expect(datasource).toEqual({ uid, type })
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    const providers = z.object({ providers: z.array(z.object({ options: z.object({ path: z.string() }) })) })
    const { path } =
      providers.parse(parseYaml(read('grafana/provisioning/dashboards/dao-data.yml'))).providers[0]?.options ?? {}
    expect(`${path}/dao-data.json`).toContain('/etc/grafana/provisioning/dashboards/')
  })
})

describe('KEDA configuration', () => {
  const scaled = z.object({
    apiVersion: z.literal('keda.sh/v1alpha1'),
    kind: z.literal('ScaledObject'),
    metadata: z.object({ name: z.string() }),
    spec: z.object({
      scaleTargetRef: z.object({ name: z.string() }),
      triggers: z
        .array(
          z.object({
            type: z.literal('prometheus'),
            metricType: z.literal('Value'),
            metadata: z.object({ query: z.string(), threshold: z.string().regex(/^\d+$/) }),
          }),
        )
        .length(1),
    }),
  })
  const objects = parseAllDocuments(read('keda/workers.yml')).map((one) => scaled.parse(one.toJS()))
  const compose = z
    .object({
      services: z.record(
        z.string(),
        z.looseObject({ environment: z.looseObject({ WORKER_QUEUES: z.string().optional() }).optional() }),
      ),
    })
    .parse(parseYaml(readFileSync(join(FOLDER, '../docker-compose.yml'), 'utf8'), { merge: true }))

  it('scales each worker of Docker Compose by the age of the jobs in its queues', async () => {
    const workers = Object.entries(compose.services).filter(([name]) => name.startsWith('worker'))
    expect(objects.map(({ metadata }) => metadata.name)).toEqual(workers.map(([name]) => name))
    const metrics = await readMetricNames()
    for (const { metadata, spec } of objects) {
      expect(spec.scaleTargetRef.name).toBe(metadata.name)
      const { query } = spec.triggers[0]?.metadata ?? { query: '' }
      const uses = toUses(query)
      expect(uses.metrics).toEqual(['queue_oldest_job_age_seconds'])
      expect(metrics.get('queue_oldest_job_age_seconds')).toEqual(expect.arrayContaining(uses.labels))
      const queues = compose.services[metadata.name]?.environment?.WORKER_QUEUES?.split(',') ?? []
      const names = jobs
        .filter(({ name, cadence }) => queues.includes(cadence) || queues.includes(name))
        .map(({ name }) => name)
      const [, selected = ''] = /dataset=~"([^"]*)"/.exec(query) ?? []
      const alerts = queues.includes('alerts') ? ['alerts'] : []
      expect(selected.split('|').sort(), metadata.name).toEqual([...names, ...alerts].sort())
    }
  })
})

it('OpenTelemetry Collector: pipelines name declared parts, and the targets are the ports of operations', () => {
  const part = z.record(z.string(), z.unknown())
  const config = z
    .object({
      receivers: part,
      processors: part,
      exporters: part,
      service: z.object({
        pipelines: z.record(
          z.string(),
          z.object({ receivers: z.array(z.string()), processors: z.array(z.string()), exporters: z.array(z.string()) }),
        ),
      }),
    })
    .parse(parseYaml(read('opentelemetry/collector.yml')))
  for (const pipeline of Object.values(config.service.pipelines))
    for (const kind of ['receivers', 'processors', 'exporters'] as const)
      expect(Object.keys(config[kind])).toEqual(expect.arrayContaining(pipeline[kind]))
  const settings = readFileSync(join(FOLDER, '../.env.example'), 'utf8')
  const ports = [...settings.matchAll(/^#? ?(?:API|SCHEDULER|WORKER)_OPS_PORT=(\d+)/gm)].map(
    ([, port]) => `127.0.0.1:${port}`,
  )
  expect(ports.length).toBe(3)
  expect(
    [...JSON.stringify(config.receivers).matchAll(/127\.0\.0\.1:94\d\d/g)].map(([target]) => target).sort(),
  ).toEqual(ports.sort())
})

it('every address of the service in these files is one of the API', () => {
  const files = readdirSync(FOLDER, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const texts = files.map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
  const addresses = texts.flatMap((text) =>
    [...text.matchAll(/http:\/\/127\.0\.0\.1:3000(\/[^\s"'`)]*)/g)].map(([, path]) => String(path)),
  )
  expect(addresses.length).toBeGreaterThan(0)
  for (const address of addresses) findOperation(address)
})

it('each folder has a row in the table of the README, with a command', () => {
  const folders = readdirSync(FOLDER, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const rows = read('README.md')
    .split('\n')
    .filter((line) => line.startsWith('| ['))
  expect(folders.map(({ name }) => name).sort()).toEqual(rows.map((row) => String(/`(\w+)\//.exec(row)?.[1])).sort())
})
