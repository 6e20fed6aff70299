import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { z } from 'zod'
import { FORMAT_NAMES, FORMATS } from '../../api/formats/formats.ts'
import { isRequired } from '../../api/parameters/parse.ts'
import { routes } from '../../api/routes.ts'
import { SHIPPED } from '../../shared/registry/source.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { selectCases } from '../support/cases.ts'
import { createTestConfig } from '../support/database.ts'
import { documentedRequests, isOfOne } from '../support/documented.ts'
import { getToken } from '../support/entities.ts'
import { DELEGATE, storeEveryDataset } from '../support/every-dataset.ts'
import { storeQuotes } from '../support/quotes.ts'

/** Fixed clock: results do not depend on the time of the run. */
const NOW = Date.parse('2024-03-10T12:02:00Z')
const SERIES = '/data/tokens/historic-financial'

const config = createTestConfig({ PROVENANCE_RAW: 'true' })
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
/** Requests whose cached answers are compared in this run. */
const compared = new Set(
  selectCases(documentedRequests, documentedRequests.length / 4, 'documented').map(({ url }) => url),
)
/** The same service without a cache. */
let forgetful: TestApi

const get = (path: string) => fetch(api.url + path)
const json = async <Body>(path: string): Promise<Body> => {
  const response = await get(path)
  expect(response.status, path).toBe(200)
  return (await response.json()) as Body
}

beforeAll(async () => {
  database = await createApiDatabase(config)
  await storeEveryDataset(database.writer, database.registry, NOW)
  const observed_at = new Date(NOW - 3_600_000).toISOString()
  const dao = database.registry.daoBySlug.get('aave')
  const read = { dao: dao?.key, space: dao?.snapshotSpace, kind: 'reading', at: observed_at }
  await database.writer.insert({ table: 'governance_in', rows: [read] })
  const { index } = database.registry
  const reading = { index_key: index.key, created_at: observed_at, block_number: 1, value: '1.5', total_supply: '2' }
  await database.writer.insert({
    table: 'index_token',
    rows: [{ ...reading, value_usd: 1500, eth_usd: 2000, eth_source: 'chainlink' }],
  })
  // Prices of the days since the documented start of a basket.
  const token = getToken(database.registry, 'UNI').key
  const before = Array.from({ length: 72 }, (_, ago) => ({ token, at: NOW - (ago + 1) * 86_400_000, market_cap: 1e9 }))
  await storeQuotes(database.writer, before)
  // A value before the documented time of its provenance, and the documented answer, which is empty.
  const counted = { token, observed_at: '2023-12-31T12:00:00.000Z', total_holders: 5, top100_share: 1, holders: [] }
  await database.writer.insert({ table: 'token_holders', rows: [counted] })
  const hash = createHash('sha256').digest('hex')
  const body = { beginning: '', hash, body: '', bytes: 0, omitted: '', kept_until: '2099-01-01T00:00:00.000Z' }
  await database.writer.insert({ table: 'raw_answers', rows: [body] })
  api = await startApi({ config, ...database, changeFeed, now: () => NOW })
  const nothing = { ...config, api: { ...config.api, cacheBytes: 0 } }
  forgetful = await startApi({ config: nothing, ...database, changeFeed, now: () => NOW })
})

afterAll(async () => {
  await api?.close()
  await forgetful?.close()
  await database?.drop()
})

interface OpenApi {
  openapi: string
  components: { schemas: Record<string, { additionalProperties: boolean; properties: object }> }
  paths: Record<
    string,
    {
      get: {
        parameters: { name: string; description?: string; schema: object }[]
        responses: Record<string, Answered>
        'x-formats'?: Record<string, { mediaType: string; isBinary: boolean; description: string }>
      }
    }
  >
}
interface Answered {
  headers: object
  content: Record<string, { schema: { items: object } }>
}

/** `content-length` is that of compressed bytes: an answer that is not cached is compressed at a cheaper level. */
const VOLATILE = new Set(['date', 'x-request-id', 'server-timing', 'content-length'])
/** Required parameters that select one record. */
/** Conditions of additional members that are the name of a parameter, with a value. */
const VALUED: Readonly<Record<string, string>> = { source: 'source=snapshot', days: 'days=7' }

const OF_ONE = { proposal: `proposal=${'0'.repeat(24)}`, address: `address=${DELEGATE}` }

const read = async (response: Response) => ({
  headers: [...response.headers].filter(([name]) => !VOLATILE.has(name)),
  body: Buffer.from(await response.arrayBuffer()).toString('base64'),
})

describe('documented routes', () => {
  it.each(documentedRequests)('$url returns the documented body, cached or not', async ({ route, url }) => {
    const created = await fetch(forgetful.url + url)
    expect(created.status).toBe(200)
    const isTable = url.includes('format=')
    expect(created.headers.get('content-type')).toBe(isTable ? FORMATS.csv.contentType : route.contentType)
    if (route.volatile) expect(created.headers.get('cache-control')).toBe('no-store')
    else expect(created.headers.get('etag')).toMatch(/^"[^"]+"$/)
    expect(created.headers.get('x-request-id')).toBeTruthy()
    expect(created.headers.get('access-control-allow-origin')).toBe('*')
    const first = await read(created)
    const isComplete = !isTable && !url.includes('fields=')
    const text = Buffer.from(first.body, 'base64').toString()
    if (isComplete) route.response.parse(route.mediaType.endsWith('json') ? JSON.parse(text) : text)
    if (route.volatile) return
    if (!compared.has(url)) return
    for (const which of ['made', 'kept']) expect(await read(await get(url)), which).toEqual(first)
  })

  it('documents parameters, response and errors of /data/tokens in OpenAPI', async () => {
    const document = await json<OpenApi>('/openapi.json')
    expect(document.openapi).toBe('3.1.0')
    expect(Object.keys(document.paths)).toEqual(routes.map(({ path }) => path))
    const { parameters, responses } = document.paths['/data/tokens']?.get ?? { parameters: [], responses: {} }
    const grants = [
      ...['id', 'name', 'category', 'chain', 'sort', 'filter', 'asOf', 'include', 'limit', 'cursor', 'fields'],
      ...['format', 'bom'],
    ]
    expect(parameters.map(({ name }) => name)).toEqual(grants)
    // Tables of several tokens match a name like the route of one token: no symbols, no part that matches several
    // names.
    const ofSeries = document.paths['/data/tokens/historic-financial']?.get.parameters
    const { description = '' } = ofSeries?.find(({ name }) => name === 'name') ?? {}
    expect(description.split('With another format than JSON: ')[1]).toContain('a part that only one has')
    expect(description).not.toContain('symbol')
    const limit = parameters.find(({ name }) => name === 'limit')
    expect(limit?.schema).toEqual({ type: 'integer', default: 10, minimum: 1, maximum: 500, examples: [3] })
    expect(Object.keys(responses)).toEqual([
      ...['200', '304', '400', '401', '405', '406', '412', '416', '429', '500', '503'],
    ])
    expect(responses[200]?.content['application/json']?.schema).toMatchObject({
      type: 'array',
      items: { $ref: '#/components/schemas/Token' },
    })
    const { Token, FinancialData } = document.components.schemas
    expect(Token?.additionalProperties).toBe(false)
    expect(Token?.properties).toHaveProperty('source.type', ['string', 'null'])
    expect(Token).toHaveProperty('required', expect.not.arrayContaining(['source']))
    expect(Token?.properties).toHaveProperty('financialData', { $ref: '#/components/schemas/FinancialData' })
    expect(FinancialData?.properties).toHaveProperty('tvl.type', ['number', 'null'])
    expect(FinancialData?.properties).toHaveProperty('lastUpdated.type', 'string')
    expect(FinancialData?.properties).toHaveProperty('price.type', 'number')
    const one = document.paths[SERIES]?.get
    expect(Object.keys(one?.responses ?? {})).toEqual([
      ...['200', '304', '400', '401', '404', '405', '406', '409', '412', '416', '429', '500', '503'],
    ])
    expect(one?.responses[200]?.headers).toHaveProperty('X-Series-Missing')
  })

  it.each(routes.filter(({ record }) => record !== undefined))(
    'documents the formats of $path and their columns',
    async (route) => {
      const document = await json<OpenApi>('/openapi.json')
      const operation = document.paths[route.path]?.get
      const { parameters, responses } = operation ?? { parameters: [], responses: {} }
      const names = parameters.map(({ name }) => name)
      expect(names).toContain('format')
      expect(Object.keys(responses[200]?.content ?? {})).toEqual(['application/json'])
      const formats = operation?.['x-formats'] ?? {}
      expect(Object.keys(formats)).toEqual(FORMAT_NAMES.filter((name) => name !== 'json'))
      for (const name of FORMAT_NAMES.filter((name) => name !== 'json'))
        expect(formats[name]).toMatchObject({ mediaType: FORMATS[name].mediaType, isBinary: FORMATS[name].isBinary })
      expect(responses[200]?.headers).toHaveProperty('Content-Disposition')
      expect('Link' in (responses[200]?.headers ?? {})).toBe(names.includes('cursor'))
      const needed = { q: 'q=uni', top: 'top=3', interval: 'interval=1d', start: 'start=2024-03-01', ...OF_ONE }
      const required = Object.entries(needed).filter(
        ([name]) =>
          name in route.query && (['interval', 'top'].includes(name) || isRequired(route.query[name] as z.ZodType)),
      )
      const who = [...required.map(([, text]) => text), ...(isOfOne(route) ? ['name=aave'] : [])].join('&')
      const columnsOf = async (more = '') => {
        const csv = await (await get(`${route.path}?${who}&format=csv${more}`)).text()
        return JSON.parse(`[${csv.split('\n')[0]}]`) as string[]
      }
      // A report has a table for each value of `table`; the columns of all are documented, in the order of the record.
      const isReport = route.path === '/data/baskets/report'
      const columns = isReport ? [] : await columnsOf()
      for (const table of isReport ? ['holdings', 'rebalances', 'exclusions', 'exits', 'missingPriceDays'] : [])
        columns.push(...(await columnsOf(`&table=${table}`)).filter((name) => !columns.includes(name)))
      const order = Object.keys(route.record?.shape ?? {})
      if (isReport) columns.sort((a, b) => order.indexOf(a) - order.indexOf(b))
      const conditions = new Map(Object.values(route.recordWith?.members ?? {}).map((one) => [one, VALUED[one] ?? one]))
      let also = ''
      for (const [condition, query] of conditions) {
        const brought = (await columnsOf(`&${query}`)).slice(columns.length)
        also += ` With \`${condition}\` also ${brought.join(', ')}.`
      }
      expect(formats.csv?.description).toBe(`Columns: ${columns.join(', ')}.${also}`)
    },
  )

  it('serves the docs pages and the error table without references to other hosts', async () => {
    for (const path of ['/docs', '/docs/errors', '/docs/start.js', '/docs/assets/swagger-ui-bundle.js']) {
      const response = await get(path)
      expect(response.status, path).toBe(200)
      if (!path.includes('assets')) expect(await response.text()).not.toMatch(/(?:src|href)="(https?:)?\/\//)
    }
    expect((await get('/docs')).headers.get('content-security-policy')).toContain("default-src 'none'")
  })
})

it.each(['categories', 'chains'])('/data/%s is as old as the newest file of the registry', async (list) => {
  const { headers } = await get(`/data/${list}`)
  const files = ['categories', 'chains', 'tokens', 'daos', 'index'].map((file) => join(SHIPPED, `${file}.json`))
  const mtimes = await Promise.all(files.map(async (file) => (await stat(file)).mtime.getTime()))
  const mtime = new Date(Math.max(...mtimes))
  expect(headers.get('x-data-as-of')).toBe(mtime.toISOString())
  expect(headers.get('last-modified')).toBe(mtime.toUTCString())
  expect(headers.get('x-data-stale')).toBeNull()
})
