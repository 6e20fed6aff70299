import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCounting } from '../../api/admission/counting.ts'
import { problemBody } from '../../api/problem/problem.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { sendTo } from '../support/mcp.ts'

const NOW = Date.parse('2024-03-10T12:02:00Z')

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

beforeAll(async () => {
  database = await createApiDatabase(config)
  api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

const send = (headers: Record<string, string>, body?: string, path?: string, method?: string) =>
  sendTo(api.url, { headers, body, path, method })

describe('/mcp', () => {
  const CALL = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} })
  const ACCEPT = { Accept: 'application/json, text/event-stream' }

  it.each([
    undefined,
    '*/*',
    'application/json',
    'application/*;q=0.5',
    'application/json, text/event-stream',
    'text/event-stream, application/json',
  ])('answers with JSON to Accept: %s', async (accept) => {
    const { status, text, headers } = await send(accept === undefined ? {} : { Accept: accept }, CALL)
    expect([status, headers['content-type']]).toEqual([200, 'application/json'])
    expect(JSON.parse(text)).toMatchObject({ id: 1, result: { tools: expect.any(Array) } })
  })

  it.each(['/mcp/', '/mcp/?data=text'])('answers at %s, with a slash at the end of the path', async (path) => {
    const { status, text } = await send(ACCEPT, CALL, path)
    expect([status, JSON.parse(text)]).toMatchObject([200, { result: { tools: expect.any(Array) } }])
  })

  it.each(['text/event-stream', 'text/html', 'application/json;q=0'])('returns 406 to Accept: %s', async (accept) => {
    const { status, text } = await send({ Accept: accept }, CALL)
    expect([status, problemBody.parse(JSON.parse(text)).code]).toEqual([406, 'not_acceptable'])
  })

  it('supports the handshake of older clients, and clients without one', async () => {
    const params = { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'old', version: '1' } }
    const hello = await send(
      { Accept: '*/*' },
      JSON.stringify({ jsonrpc: '2.0', id: 'a', method: 'initialize', params }),
    )
    expect(JSON.parse(hello.text)).toMatchObject({ id: 'a', result: { protocolVersion: '2025-03-26' } })
    const done = await send({}, JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }))
    expect([done.status, done.text]).toEqual([202, ''])
    const call = { name: 'query', arguments: { topic: 'categories', limit: '1', of: null } }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: call })
    const old = JSON.parse((await send({}, body)).text)
    expect(old.result.content.map(({ type }: { type: string }) => type)).toEqual(['text'])
    const late = JSON.parse((await send({ 'MCP-Protocol-Version': '2025-06-18' }, body)).text)
    expect(late.result.content.map(({ type }: { type: string }) => type)).toEqual([
      ...['text', 'resource_link', 'resource_link'],
    ])
    expect(JSON.parse(late.result.content[0].text)).toEqual(late.result.structuredContent)
  })

  const deep = (depth: number) =>
    `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`

  it.each([
    ['JSON that is nested 5,000 levels deep', {}, deep(5_000), undefined],
    ['lists that are nested 30,000 levels deep', {}, `{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}`, undefined],
    ['a Host with a user', { Host: 'evil@localhost' }, CALL, undefined],
    ['a Host with a path', { Host: 'localhost/evil' }, CALL, undefined],
    ['a Host with a query', { Host: 'localhost?evil' }, CALL, undefined],
    ['a target in absolute form', {}, CALL, 'http://localhost/mcp'],
    ['null', {}, 'null', undefined],
    ['a number', {}, '1', undefined],
    ['a text', {}, '"tools/list"', undefined],
  ])('returns 400 to %s', async (_what, headers, body, target) => {
    expect((await send({ ...ACCEPT, ...headers } as Record<string, string>, body, target)).status).toBe(400)
  })

  it('rejects foreign Host and Origin headers', async () => {
    expect((await send(ACCEPT, CALL)).status).toBe(200)
    const foreign = await send({ ...ACCEPT, Host: 'api:4100' }, CALL)
    expect(foreign.status).toBe(403)
    expect(JSON.stringify(foreign)).toContain('MCP_HOSTS')
    expect((await send({ ...ACCEPT, Origin: 'https://evil.example' }, CALL)).status).toBe(403)
    expect((await send({ ...ACCEPT, Origin: 'http://localhost:6274' }, CALL)).status).toBe(200)
  })

  it.each([
    ['too long a body', `{"a":"${'x'.repeat(70_000)}"}`, /exceeds 65536 bytes/],
    ['several calls at once', `[${CALL},${CALL}]`, /One call at a time/],
    ['what is no JSON', '{', /not JSON/],
  ])('rejects %s', async (_what, body, said) => {
    const { status, text } = await send(ACCEPT, body)
    expect(status).toBe(400)
    expect(problemBody.parse(JSON.parse(text)).detail).toMatch(said)
  })

  it('returns 405 to other methods than POST', async () => {
    const { status, headers } = await send({}, '', '/mcp', 'GET')
    expect([status, headers.allow]).toEqual([405, 'POST, OPTIONS'])
    expect((await send({}, '', '/mcp', 'OPTIONS')).headers['access-control-allow-methods']).toBe('POST, OPTIONS')
    expect((await send({}, '', '/data/tokens', 'POST')).headers.allow).toBe('GET, HEAD, OPTIONS')
  })

  it('counts each request of a tool call, and rejects those over the limit', async () => {
    const limits = {
      keys: undefined,
      anonymous: { requests: 12, seconds: 3_600 },
      counting: createCounting(undefined, 'mcp-tools'),
    }
    const limited = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW, limits })
    const query = async (of: readonly string[]) => {
      const params = { name: 'query', arguments: { topic: 'daos/governance', of } }
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
      const { text, headers } = await sendTo(limited.url, { headers: {}, body })
      return { text, remaining: Number(/;r=(\d+);/.exec(String(headers.ratelimit))?.[1]) }
    }
    const ids = database.registry.daos.map(({ id }) => id)
    expect((await query(ids.slice(0, 5))).remaining).toBe(7)
    const { text, remaining } = await query(ids.slice(0, 20))
    expect(remaining).toBe(0)
    expect(text).toContain('rate_limited')
    await limited.close()
  })

  it('counts for the rate limits like every path', async () => {
    const limits = {
      keys: undefined,
      anonymous: { requests: 5, seconds: 3_600 },
      counting: createCounting(undefined, 'mcp'),
    }
    const limited = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW, limits })
    const call = () =>
      fetch(`${limited.url}/mcp`, {
        method: 'POST',
        body: CALL,
        headers: { ...ACCEPT, 'Content-Type': 'application/json' },
      })
    const statuses: number[] = []
    for (let n = 0; n < 6; n += 1) {
      const response = await call()
      statuses.push(response.status)
      expect(response.headers.get('ratelimit')).toMatch(new RegExp(`;r=${Math.max(0, 4 - n)};`))
      await response.arrayBuffer()
    }
    await limited.close()
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
  })
})
