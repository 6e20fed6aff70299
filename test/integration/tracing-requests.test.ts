import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase } from '../../shared/store/store.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { startDoor } from '../support/clickhouse-door.ts'
import { type Collector, KIND } from '../support/collector.ts'
import { createTestConfig } from '../support/database.ts'
import { traceThisProcess } from '../support/traced.ts'

let collector: Collector
let database: Awaited<ReturnType<typeof createApiDatabase>>
let door: Awaited<ReturnType<typeof startDoor>>
let api: TestApi
let broken: TestApi

const own = createTestConfig()

beforeAll(async () => {
  collector = await traceThisProcess()
  database = await createApiDatabase(own)
  const { registry } = database
  door = await startDoor(own.clickhouse.url)
  const clickhouse = { ...own.clickhouse, url: door.url }
  const config = { ...own, clickhouse }
  const changeFeed = createHandFeed()
  api = await startApi({ config, registry, changeFeed, db: createDatabase(clickhouse, 'read') })
  const unavailable = { ...clickhouse, url: 'http://127.0.0.1:1' }
  broken = await startApi({ config, registry, changeFeed, db: createDatabase(unavailable, 'read') })
})

afterAll(async () => {
  await Promise.all([api?.close(), broken?.close(), door?.close(), database?.drop()])
  await collector?.close()
})

/** The trace of a client's request. */
function createTrace(traceId: string, flags = '01') {
  return { traceId, headers: { traceparent: `00-${traceId}-00f067aa0ba902b7-${flags}` } }
}

const untilServed = (traceId: string) =>
  collector.until((span) => span.kind === KIND.server && span.traceId === traceId)

describe('trace of a request', () => {
  it("continues the client's trace down to the query and the database server", async () => {
    const { traceId, headers } = createTrace('4bf92f3577b34da6a3ce929d0e0e4736')
    const response = await fetch(`${api.url}/data/tokens?limit=2`, { headers })
    await response.text()
    const served = await untilServed(traceId)
    expect(served).toMatchObject({ name: 'GET /data/tokens', parentSpanId: '00f067aa0ba902b7', failed: false })
    expect(served.service).toBe('dao-data-test')
    expect(served.attributes).toMatchObject({
      'http.request.method': 'GET',
      'http.route': '/data/tokens',
      'http.response.status_code': 200,
      'url.path': '/data/tokens',
      'url.query': 'limit=2',
      'url.scheme': 'http',
    })
    const [query] = collector.childrenOf(served)
    expect(query).toMatchObject({ kind: KIND.client, failed: false })
    expect(query?.attributes).toMatchObject({
      'db.system.name': 'clickhouse',
      'db.operation.name': 'SELECT',
      'db.namespace': own.clickhouse.database,
      'db.query.summary': query?.name,
      'server.address': '127.0.0.1',
    })
    expect(query?.attributes['db.query.text']).toMatch(/^\s*(SELECT|WITH)/)
    expect(door.traces).toContain(`00-${traceId}-${query?.spanId}-01`)
  })

  it('has no span for a cached response, and none if the client does not sample', async () => {
    const [first, cached, unwanted, last] = ['1', '2', '3', '4'].map((digit) => digit.repeat(32)) as [
      string,
      ...string[],
    ]
    for (const [path, trace] of [
      ['/data/chains', createTrace(String(first))],
      ['/data/chains', createTrace(String(cached))],
      ['/data/categories', createTrace(String(unwanted), '00')],
      ['/data/daos?limit=1', createTrace(String(last))],
    ] as const) {
      await (await fetch(`${api.url}${path}`, { headers: trace.headers })).text()
    }
    await untilServed(String(last))
    const arrived = new Set(collector.spans.map(({ traceId }) => traceId))
    expect([first, cached, unwanted].map((id) => arrived.has(String(id)))).toEqual([true, false, false])
  })

  it('is not failed for a client error, and does not contain the query', async () => {
    const { traceId, headers } = createTrace('5'.repeat(32))
    expect((await fetch(`${api.url}/data/tokens?api_key=hidden-secret`, { headers })).status).toBe(400)
    const served = await untilServed(traceId)
    expect(served).toMatchObject({ name: 'GET /data/tokens', failed: false, events: [] })
    expect(served.attributes['http.response.status_code']).toBe(400)
    expect(JSON.stringify(served)).not.toContain('hidden-secret')
  })

  it('is failed in both spans if the database fails', async () => {
    const { traceId, headers } = createTrace('6'.repeat(32))
    expect((await fetch(`${broken.url}/data/tokens`, { headers })).status).toBe(503)
    const served = await untilServed(traceId)
    expect(served).toMatchObject({ failed: true, attributes: { 'error.type': '503', 'http.route': '/data/tokens' } })
    expect(served.events[0]?.attributes).toMatchObject({ 'exception.type': 'DataError' })
    const failed = collector.childrenOf(served).find((span) => span.kind === KIND.client)
    expect(failed).toMatchObject({ failed: true, attributes: { 'error.type': 'storage', 'server.port': 1 } })
  })

  it('has a span per query of a long series', async () => {
    const { traceId, headers } = createTrace('7'.repeat(32))
    const search = 'name=Uniswap&interval=5m&start=2024-05-06&end=2024-05-07'
    const response = await fetch(`${api.url}/data/tokens/historic-financial?${search}`, { headers })
    expect(response.status).toBe(200)
    await response.text()
    const served = await untilServed(traceId)
    const queries = collector.childrenOf(served)
    expect(queries.length).toBeGreaterThan(0)
    expect(queries.every(({ kind, failed }) => kind === KIND.client && !failed)).toBe(true)
  })
})
