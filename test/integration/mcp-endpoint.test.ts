import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCounting } from '../../api/limits/counting.ts'
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
  api = await startApi({ config, ...database, commits: createHandFeed(), now: () => NOW })
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

  it('refuses names that a foreign page could have made lead here', async () => {
    expect((await send(ACCEPT, CALL)).status).toBe(200)
    expect((await send({ ...ACCEPT, Host: 'evil.example' }, CALL)).status).toBe(403)
    expect((await send({ ...ACCEPT, Origin: 'https://evil.example' }, CALL)).status).toBe(403)
    expect((await send({ ...ACCEPT, Origin: 'http://localhost:6274' }, CALL)).status).toBe(200)
  })

  it.each([
    ['too long a body', `{"a":"${'x'.repeat(70_000)}"}`, /exceeds 65536 bytes/],
    ['several calls at once', `[${CALL},${CALL}]`, /One call at a time/],
    ['what is no JSON', '{', /not JSON/],
  ])('refuses %s', async (_what, body, said) => {
    const { status, text } = await send(ACCEPT, body)
    expect(status).toBe(400)
    expect(problemBody.parse(JSON.parse(text)).detail).toMatch(said)
  })

  it('takes POST only, and says so', async () => {
    const { status, headers } = await send({}, '', '/mcp', 'GET')
    expect([status, headers.allow]).toEqual([405, 'POST, OPTIONS'])
    expect((await send({}, '', '/mcp', 'OPTIONS')).headers['access-control-allow-methods']).toBe('POST, OPTIONS')
    expect((await send({}, '', '/data/tokens', 'POST')).headers.allow).toBe('GET, HEAD, OPTIONS')
  })

  it('counts for the limits as every path does', async () => {
    const limits = {
      keys: undefined,
      anonymous: { requests: 5, seconds: 3_600 },
      counting: createCounting(undefined, 'mcp'),
    }
    const limited = await startApi({ config, ...database, commits: createHandFeed(), now: () => NOW, limits })
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
