import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { FORMAT_NAMES, FORMATS, type Format } from '../../api/formats/formats.ts'
import { takesSeveral } from '../../api/parameters/parse.ts'
import { problemBody } from '../../api/problem/problem.ts'
import { routes } from '../../api/routes.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { selectCases } from '../support/cases.ts'
import { createTestConfig } from '../support/database.ts'
import { DELEGATE, storeEveryDataset } from '../support/every-dataset.ts'
import { readTable, toExpected } from '../support/tables.ts'

/** Fixed clock: results do not depend on the time of the run. */
const NOW = Date.parse('2024-03-10T12:02:00Z')
const SERIES = '/data/tokens/historic-financial'
const TABLES = FORMAT_NAMES.filter((name) => name !== 'json')

const config = createTestConfig()
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

const request = (path: string, headers: Record<string, string> = {}) => fetch(api.url + path, { headers })
const read = async (response: Response) => Buffer.from(await response.arrayBuffer())

beforeAll(async () => {
  database = await createApiDatabase(config)
  await storeEveryDataset(database.writer, database.registry, NOW)
  api = await startApi({ config, ...database, changeFeed, now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

/** Returns a query with a non-empty result for each route with records. */
const CANDLES = ['/data/tokens/historic-ohlc', '/data/tokens/historic-dex-ohlcv']

function toQuery(path: string, isSingle: boolean): string {
  if (path === SERIES) return 'name=aave&interval=5m&start=2024-03-01'
  if (CANDLES.includes(path)) return 'name=aave&interval=30m&start=2024-03-09'
  if (path === '/data/search') return 'q=a&limit=20'
  if (path === '/data/voters') return `address=${DELEGATE}`
  if (path.endsWith('delegates/historic')) return `name=aave&address=${DELEGATE}`
  if (path.startsWith('/data/daos/treasury/flows')) return 'name=ethereum%20name%20service'
  return isSingle ? 'name=aave' : ''
}

const lists = routes.flatMap(({ path, record, query }) => {
  // The actions of a proposal need a governor's events, a basket needs days of prices, and the record of a voter and the blocs
  // are objects in JSON: their own tests read them.
  if (record === undefined || path.startsWith('/data/baskets/')) return []
  if (['/actions', '/governance/record', '/governance/blocs'].some((end) => path.endsWith(end))) return []
  return [{ path, record, query: toQuery(path, query.id !== undefined && !takesSeveral(query.id as z.ZodType)) }]
})

/** Returns the records of a JSON body. The financial series gets the columns of its tables. */
function toRecords(path: string, body: unknown): readonly unknown[] {
  if (CANDLES.includes(path)) return (body as { data: unknown[] }).data
  if (path !== SERIES) return body as unknown[]
  const { id, name, data } = body as { id: string; name: string; data: object[] }
  const symbol = database.registry.tokenById.get(id)?.symbol
  return data.map((point) => ({ id, name, symbol, ...point }))
}

it.each(lists)('$path returns the same records in every format', async ({ path, record, query }) => {
  const plain = await request(`${path}?${query}`)
  const records = toRecords(path, await plain.json())
  expect(records.length).toBeGreaterThan(0)
  for (const format of TABLES) {
    const named = await request(`${path}?${query}&format=${format}`)
    expect(named.status, format).toBe(200)
    expect(named.headers.get('content-type')).toBe(FORMATS[format].contentType)
    const file = new RegExp(`^attachment; filename="[a-z0-9-]+\\.${FORMATS[format].extension}"$`)
    expect(named.headers.get('content-disposition')).toMatch(file)
    for (const name of ['x-data-as-of', 'x-series-points', 'x-series-missing', 'cache-control']) {
      expect(named.headers.get(name), `${name} of ${format}`).toBe(plain.headers.get(name))
    }
    expect(named.headers.get('etag'), format).not.toBe(plain.headers.get('etag'))
    const bytes = await read(named)
    expect(await readTable(format, bytes), format).toEqual(toExpected(format, records, record as z.ZodType))
    if (!selectCases(TABLES, 1, path).includes(format)) continue
    const accepted = await request(`${path}?${query}`, { accept: FORMATS[format].mediaType })
    expect(accepted.headers.get('content-type')).toBe(FORMATS[format].contentType)
    expect(await read(accepted), format).toEqual(bytes)
  }
})

describe('format', () => {
  const LIST = '/data/tokens?limit=3'

  it('prefers the parameter over Accept; format=json equals the default body', async () => {
    const [plain, named] = await Promise.all([request(LIST), request(`${LIST}&format=json`, { accept: 'text/csv' })])
    expect(await named.text()).toBe(await plain.text())
    expect(named.headers.get('etag')).toBe(plain.headers.get('etag'))
    expect(named.headers.get('content-disposition')).toBeNull()
    const csv = await request(`${LIST}&format=csv`, { accept: 'image/png' })
    expect(csv.headers.get('content-type')).toBe(FORMATS.csv.contentType)
  })

  it('does not serve the cached format of one client to another client', async () => {
    const types: (string | null)[] = []
    for (const accept of ['text/csv', '*/*', 'application/x-ndjson', 'text/csv', 'text/html,*/*;q=0.8', 'text/csv']) {
      const response = await request(LIST, { accept })
      types.push(response.headers.get('content-type')?.split(';')[0] ?? null)
      expect(response.headers.get('vary')).toBe('Accept, Accept-Encoding')
    }
    const [csv, json] = ['text/csv', 'application/json']
    expect(types).toEqual([csv, json, 'application/x-ndjson', csv, json, csv])
    expect((await request(LIST, { accept: 'text/html' })).status).toBe(406)
  })

  it.each(TABLES)('supports ETag, 304 and HEAD in %s', async (format) => {
    const url = `${LIST}&format=${format}`
    const full = await request(url)
    const etag = full.headers.get('etag') ?? ''
    const { length } = await read(full)
    const existing = await request(url, { 'if-none-match': etag })
    expect([existing.status, await existing.text()]).toEqual([304, ''])
    const head = await fetch(api.url + url, { method: 'HEAD' })
    expect([head.status, head.headers.get('etag'), await head.text()]).toEqual([200, etag, ''])
    if (format === 'parquet') expect(head.headers.get('content-length')).toBe(String(length))
    expect(full.headers.get('content-encoding')).toBe(format === 'parquet' ? null : 'gzip')
  })

  it('returns a valid empty file for an empty result', async () => {
    for (const format of TABLES) {
      const response = await request(`/data/tokens?id=${'f'.repeat(24)}&format=${format}`)
      expect(response.status).toBe(200)
      expect(await readTable(format, await read(response)), format).toEqual([])
    }
    const csv = await request(`/data/daos/ratings?id=${'f'.repeat(24)}&format=csv&fields=_id,name`)
    expect(await csv.text()).toBe('"_id","name"\n')
  })

  it('begins CSV with a byte order mark if bom=true', async () => {
    // A list from memory, a table that ClickHouse writes, a series from cached chunks and a stream.
    const urls = [
      '/data/tokens?limit=3',
      '/data/tokens/historic-dex-trades?name=aave&limit=2',
      '/data/tokens/historic-financial?name=aave&interval=1h&start=2024-03-01',
      '/data/tokens/historic-financial?name=aave&interval=1h&start=2024-03-01&fill=null',
    ]
    for (const url of urls) {
      const [plain, marked] = await Promise.all([request(`${url}&format=csv`), request(`${url}&bom=true&format=csv`)])
      const bytes = await read(marked)
      expect(bytes.subarray(0, 3).toString('hex'), url).toBe('efbbbf')
      expect(bytes.subarray(3), url).toEqual(await read(plain))
      expect(marked.headers.get('etag'), url).not.toBe(plain.headers.get('etag'))
      expect(await read(await request(`${url}&bom=true`, { accept: 'text/csv' })), url).toEqual(bytes)
      expect(await read(await request(`${url}&bom=false&format=csv`)), url).toEqual(bytes.subarray(3))
      const [json, other] = await Promise.all([request(url), request(`${url}&bom=true`)])
      expect(await read(other), url).toEqual(await read(json))
    }
  })

  it('repeats bom in the link to the next page, whose cursor does not depend on it', async () => {
    const next = (await request('/data/tokens?limit=2&bom=true&format=csv')).headers.get('link') ?? ''
    expect(next).toContain('bom=true')
    const plain = (await request('/data/tokens?limit=2&format=csv')).headers.get('link') ?? ''
    expect(next.replace('&bom=true', '')).toBe(plain)
  })

  it('distinguishes null from an empty text and quotes texts in CSV', async () => {
    const text = await (await request('/data/daos/treasury?limit=1&format=csv')).text()
    expect(text).toContain('"[{""token"":""A\\""B"",""quantity"":1.5,""valueUsd"":10}')
    const trades = await (await request('/data/tokens/historic-dex-trades?name=aave&limit=1&format=csv')).text()
    expect(trades.split('\n')[1]).toMatch(/^"2024-03-10T12:02:00\.000Z",.*,"BUY",$/)
  })

  const mistakes: [string, string, string, number][] = [
    ['/data/tokens?format=xml', 'invalid_parameter', 'format', 400],
    ['/data/tokens?format=csv&format=json', 'invalid_parameter', 'format', 400],
    ['/data/tokens?format=', 'invalid_parameter', 'format', 400],
    ['/data/tokens?bom=yes&format=csv', 'invalid_parameter', 'bom', 400],
    ['/data/status?format=csv', 'unknown_parameter', 'format', 400],
    ['/data/daos/governance?name=aave&format=csv', 'unknown_parameter', 'format', 400],
    ['/charts/24h/x.svg?format=csv', 'unknown_parameter', 'format', 400],
    ['/data/tokens?fields=nmae', 'invalid_parameter', 'fields', 400],
    ['/data/tokens?fields=', 'invalid_parameter', 'fields', 400],
    [`${SERIES}?name=aave&interval=1d&start=2024-01-01&fields=id`, 'invalid_parameter', 'fields', 400],
  ]
  it.each(mistakes)('rejects %s with code %s', async (path, code, param, status) => {
    const response = await request(path)
    const body = problemBody.parse(await response.json())
    expect([response.status, body.code, body.param]).toEqual([status, code, param])
    if (path.includes('xml')) expect(body.allowed).toEqual([...FORMAT_NAMES])
    if (path.includes('nmae')) expect(body.allowed).toContain('financialData')
  })

  it('returns 406 with the available media types if none is acceptable', async () => {
    const response = await request('/data/tokens', { accept: 'text/html' })
    const body = problemBody.parse(await response.json())
    expect([response.status, body.code]).toEqual([406, 'not_acceptable'])
    expect(body.allowed).toEqual(FORMAT_NAMES.map((name: Format) => FORMATS[name].mediaType))
    const status = problemBody.parse(await (await request('/data/status', { accept: 'text/csv' })).json())
    expect(status.allowed).toEqual(['application/json'])
  })
})

describe('fields', () => {
  const selected = lists.filter(({ path }) => path !== SERIES && !CANDLES.includes(path))

  it.each(selected)('returns a subset of $path in record order', async ({ path, record, query }) => {
    const names = Object.keys(record.shape)
    const subset = names.filter((_, index) => index % 2 === 0 || index > 8)
    const all = (await (await request(`${path}?${query}`)).json()) as Record<string, unknown>[]
    // A member that default records leave out is null if it is requested.
    const expected = all.map((one) => Object.fromEntries(subset.map((name) => [name, one[name] ?? null])))
    const list = [...subset].reverse().join()
    const json = await request(`${path}?${query}&fields=${list}`)
    expect(json.status).toBe(200)
    expect(await json.text()).toBe(JSON.stringify(expected))
    const schema = z.strictObject(Object.fromEntries(subset.map((name) => [name, record.shape[name] as z.ZodType])))
    for (const format of ['ndjson', 'parquet'] as const) {
      const table = await readTable(
        format,
        await read(await request(`${path}?${query}&fields=${list}&format=${format}`)),
      )
      expect(table).toEqual(toExpected(format, expected, schema))
    }
  })

  it('may be repeated; selecting all fields returns the default body', async () => {
    const [joined, repeated] = await Promise.all([
      request('/data/chains?fields=name,_id'),
      request('/data/chains?fields=_id&fields=name'),
    ])
    expect(await repeated.text()).toBe(await joined.text())
    const names = Object.keys(lists.find(({ path }) => path === '/data/tokens')?.record.shape ?? {}).join()
    const [all, plain] = await Promise.all([request(`/data/tokens?fields=${names}`), request('/data/tokens')])
    expect(await all.text()).toBe(await plain.text())
  })
})
