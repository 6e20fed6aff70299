import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { routes } from '../../api/routes.ts'
import { createBusyStream } from '../support/busy-stream.ts'
import { type Demo, startDemo } from '../support/demo.ts'

const link = z.object({ operationId: z.string(), parameters: z.record(z.string(), z.unknown()).default({}) })
const itemSchema = z.looseObject({ oneOf: z.array(z.looseObject({})).optional() })
const operation = z.object({
  operationId: z.string(),
  parameters: z.array(z.object({ name: z.string(), in: z.enum(['path', 'query']) })),
  responses: z.looseObject({
    200: z.object({
      links: z.record(z.string(), link).default({}),
      content: z.record(z.string(), z.object({ schema: z.unknown().optional(), itemSchema: itemSchema.optional() })),
    }),
  }),
  'x-formats': z.record(z.string(), z.unknown()).optional(),
})
const document = z.object({
  openapi: z.string(),
  paths: z.record(z.string(), z.object({ get: operation })),
  components: z.object({ schemas: z.record(z.string(), z.unknown()) }),
})
type Document = z.infer<typeof document>

const changeStream = createBusyStream()
let demo: Demo
beforeAll(async () => {
  demo = await startDemo({ changeStream })
})
afterAll(async () => {
  await demo?.close()
  changeStream.close()
})

const readDocument = async (path: string): Promise<Document> =>
  document.parse(await (await fetch(demo.url + path)).json())

const BODY = '$response.body#/'

/** The value of a runtime expression; undefined if the answer does not have it. */
function evaluate(expression: unknown, body: unknown): unknown {
  if (typeof expression !== 'string' || !expression.startsWith(BODY)) return expression
  const keys = expression.slice(BODY.length).split('/')
  return keys.reduce<unknown>(
    (value, key) => (value === undefined || value === null ? undefined : Reflect.get(Object(value), key)),
    body,
  )
}

/** Follows links from one operation, each at most once per operation and parameters. Knows nothing else of the API. */
async function walk({ paths }: Document, first: string) {
  const byId = new Map(Object.entries(paths).map(([path, { get }]) => [get.operationId, { path, ...get }]))
  const reached = new Set<string>()
  const failed: string[] = []
  const queue: { id: string; given: Record<string, unknown> }[] = [{ id: first, given: {} }]
  for (const { id, given } of queue) {
    const target = byId.get(id)
    if (target === undefined) throw new Error(`no operation is called ${id}`)
    if (reached.has(id)) continue
    const url = new URL(demo.url)
    url.pathname = target.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(given[name])))
    for (const { name } of target.parameters.filter((parameter) => parameter.in === 'query' && parameter.name in given))
      for (const value of [given[name]].flat()) url.searchParams.append(name, String(value))
    const response = await fetch(url)
    if (response.status !== 200) failed.push(`${id} ${response.status} ${url.search}`)
    if (response.status !== 200) continue
    reached.add(id)
    const body = response.headers.get('content-type')?.includes('json') ? await response.json() : await response.text()
    for (const { operationId, parameters } of Object.values(target.responses[200].links)) {
      const values = Object.entries(parameters).map(([name, value]) => [name, evaluate(value, body)] as const)
      if (values.every(([, value]) => value !== undefined && value !== null))
        queue.push({ id: operationId, given: Object.fromEntries(values) })
    }
  }
  return { reached, failed }
}

describe('links of the OpenAPI document', () => {
  it('lead from the status to all operations but streams and stored answers of providers', async () => {
    const { paths, ...rest } = await readDocument('/openapi.json')
    const { reached } = await walk({ paths, ...rest }, 'getStatus')
    const all = Object.values(paths).map(({ get }) => get.operationId)
    expect(all.filter((id) => !reached.has(id))).toEqual(['getProvenanceRaw', 'streamChanges'])
    expect(reached.size / all.length).toBeGreaterThanOrEqual(0.9)
  })

  it('have parameters of their target only', async () => {
    const { paths } = await readDocument('/openapi.json')
    const operations = Object.values(paths).map(({ get }) => get)
    const links = operations.flatMap((from) =>
      Object.values(from.responses[200].links).map((one) => ({ from: from.operationId, ...one })),
    )
    expect(links.length).toBeGreaterThan(100)
    for (const { from, operationId, parameters } of links) {
      const target = operations.find((one) => one.operationId === operationId)
      const names = target?.parameters.map(({ name }) => name)
      expect(names, `${from} to ${operationId}`).toEqual(expect.arrayContaining(Object.keys(parameters)))
    }
  })
})

describe('OpenAPI 3.2 document', () => {
  it('has the document of 3.1 with the items of NDJSON and events', async () => {
    const usual = await readDocument('/openapi.json')
    const twin = await readDocument('/openapi-3.2.json')
    expect([usual.openapi, twin.openapi]).toEqual(['3.1.0', '3.2.0'])
    for (const [path, { get }] of Object.entries(twin.paths)) {
      const { 'application/x-ndjson': lines, ...content } = get.responses[200].content
      expect(lines?.itemSchema !== undefined, path).toBe(get['x-formats'] !== undefined)
      const { itemSchema: events, ...rest } = content['text/event-stream'] ?? {}
      expect(events !== undefined, path).toBe(get.operationId === 'streamChanges')
      const before = usual.paths[path]?.get
      const same = content['text/event-stream'] === undefined ? content : before?.responses[200].content
      expect({ ...get, responses: { ...get.responses, 200: { ...get.responses[200], content: same } } }).toEqual(before)
      if (events !== undefined) expect(rest).toEqual({})
    }
    const references = [...JSON.stringify(twin).matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) =>
      String(name),
    )
    expect(references.filter((name) => !(name in twin.components.schemas))).toEqual([])
  })

  it('describes the events that the service sends', async () => {
    const controller = new AbortController()
    const response = await fetch(`${demo.url}/data/stream`, { signal: controller.signal })
    let text = ''
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk
      if (text.includes('event: change') && text.endsWith('\n\n')) break
    }
    controller.abort()
    const [, data = ''] = /event: change\ndata: (.*)\n/.exec(text) ?? []
    const { change, reset } = routes.find(({ isEndless }) => isEndless)?.events ?? {}
    expect(change?.parse(JSON.parse(data))).toMatchObject({ dataset: 'prices', entities: 2 })
    expect(reset?.parse({})).toEqual({})
  })
})
