import { request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { PROBLEM_CODES, type ProblemCode } from '../../api/problem/codes.ts'
import { problemBody } from '../../api/problem/problem.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { createChangeFeed, createDatabase, publishChange } from '../../shared/store/store.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { storeMarket } from '../support/market.ts'
import { silent } from '../support/silent.ts'

const NOW = Date.parse('2024-03-10T12:02:00Z')
const UNI = '/data/tokens/historic-financial?name=uniswap&interval=1h&start=2024-03-10'

const config = createTestConfig()
const changeFeed = createHandFeed()
const clock = { now: NOW }
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

const keysOf = (...symbols: string[]) =>
  database.registry.tokens.filter(({ symbol }) => symbols.includes(symbol)).map(({ key }) => key)
const sendRequest = (path: string, init: RequestInit = {}) => fetch(api.url + path, init)

beforeAll(async () => {
  database = await createApiDatabase(config)
  await storeMarket(database.writer, { keys: keysOf('UNI', 'AAVE'), until: NOW - 60_000, points: 288, stepMs: 300_000 })
  api = await startApi({ config, ...database, changeFeed, now: () => clock.now })
})

afterAll(async () => {
  await api?.close()
  await database?.drop()
})

describe('error responses', () => {
  const series = '/data/tokens/historic-financial'
  const id = 'f'.repeat(24)
  const cases: [string, ProblemCode, string | undefined, RequestInit?][] = [
    ['/data/tokens?nmae=x', 'unknown_parameter', 'nmae'],
    ['/data/tokens?limit=501', 'invalid_parameter', 'limit'],
    ['/data/tokens?id=xyz', 'invalid_parameter', 'id'],
    ['/data/tokens?name=%E0%A4%A', 'invalid_parameter', undefined],
    ['/charts/24h/%E0%A4%A.svg', 'invalid_parameter', undefined],
    ['/charts/24h/xyz.svg', 'invalid_parameter', 'tokenId'],
    [`/charts/24h/${id}.svg?tokenId=${id}`, 'unknown_parameter', 'tokenId'],
    ['/docs?x=1', 'unknown_parameter', 'x'],
    ['/docs/errors?x=1', 'unknown_parameter', 'x'],
    ['/docs/assets/swagger-ui.css?x=1', 'unknown_parameter', 'x'],
    [`/charts/24h/${id}.svg`, 'not_found', 'tokenId'],
    ['/marks/xyz.svg', 'invalid_parameter', 'markOf'],
    [`/marks/${id}.svg`, 'not_found', 'markOf'],
    [`${series}?interval=1h&start=2024-01-01`, 'missing_parameter', 'id'],
    [`${series}?name=uniswap&start=2024-01-01`, 'missing_parameter', 'interval'],
    [`${series}?name=uniswap&interval=2h&start=2024-01-01`, 'invalid_parameter', 'interval'],
    [`${series}?name=uniswap&interval=1h&start=2022-01-31`, 'invalid_parameter', 'start'],
    [`${series}?name=uniswap&interval=1h&start=2024-01-02&end=2024-01-01`, 'invalid_parameter', 'end'],
    [`${series}?name=uniswap&interval=1h&start=2024-01-02&limit=1000001`, 'invalid_parameter', 'limit'],
    [`${series}?id=${id}&interval=1h&start=2024-01-01`, 'not_found', 'id'],
    [`${series}?name=no-such-name&interval=1h&start=2024-01-01`, 'not_found', 'name'],
    [`${series}?name=a&interval=1h&start=2024-01-01`, 'ambiguous_name', 'name'],
    ['/data/nowhere', 'not_found', undefined],
    ['/DATA/tokens', 'not_found', undefined],
    ['/data/tokens', 'method_not_allowed', undefined, { method: 'POST' }],
    ['/data/tokens', 'not_acceptable', undefined, { headers: { accept: 'text/html' } }],
    ['/docs/assets/../../package.json', 'not_found', undefined],
    ['/docs/assets/index.html', 'not_found', undefined],
    ['/docs/assets/swagger-ui-bundle.js.map', 'not_found', undefined],
  ]

  it.each(cases)('%s is rejected with code %s', async (path, code, param, init) => {
    const response = await sendRequest(path, init)
    expect(response.status).toBe(PROBLEM_CODES[code].status)
    expect(response.headers.get('content-type')).toBe('application/problem+json; charset=utf-8')
    expect(response.headers.get('cache-control')).toBe('no-store')
    const body = problemBody.parse(await response.json())
    expect([body.code, body.param]).toEqual([code, param])
    expect(body.status).toBe(response.status)
    expect(body.requestId).toBe(response.headers.get('x-request-id'))
    expect(body.detail).not.toMatch(/select|from|clickhouse|DB::/i)
    if (code === 'method_not_allowed') expect(response.headers.get('allow')).toBe('GET, HEAD, OPTIONS')
    if (code === 'ambiguous_name') expect(body.candidates?.length).toBeGreaterThan(1)
  })

  it('returns a problem document for malformed HTTP requests', async () => {
    const { port, hostname } = new URL(api.url)
    const send = async (bytes: string) => {
      const socket = connect(Number(port), hostname)
      socket.write(bytes)
      const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n')
      expect(head).toContain('HTTP/1.1 400 ')
      expect(head).toContain('Content-Type: application/problem+json; charset=utf-8')
      return problemBody.parse(JSON.parse(body))
    }
    expect((await send('what?\r\n\r\n')).code).toBe('invalid_parameter')
    const endless = await send(`GET /${'x'.repeat(300_000)} HTTP/1.1\r\nHost: a\r\n\r\n`)
    expect(endless.detail).toContain('32768 bytes')
    expect((await send('GET /data/tokens HTTP/1.1\r\n\r\n')).detail).toContain('no Host')
    const target = await send('GET http://[::1/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    expect(target.detail).toContain('no URL')
    const twice = await send('GET /data/tokens HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n')
    expect(twice.detail).toContain('more than one Host')
    expect((await send('GET /data/tokens HTTP/1.1\r\nHost: a\r\nExpect: wonders\r\n\r\n')).detail).toContain('Expect')
  })

  it('accepts a hundred names of the maximum length', async () => {
    const names = Array.from({ length: 100 }, (_, i) => `name=${`${i}`.padEnd(200, 'x')}`)
    expect((await sendRequest(`/data/tokens?${names.join('&')}`)).status).toBe(200)
  })

  it('returns 503 with Retry-After if the database is unavailable, also from /health/ready', async () => {
    const unavailable = createDatabase({ ...config.clickhouse, url: 'http://127.0.0.1:1' }, 'read')
    const lonely = await startApi({ config, registry: database.registry, db: unavailable, changeFeed })
    try {
      for (const path of ['/data/tokens', UNI, '/data/status', '/health/ready']) {
        const response = await fetch(lonely.url + path)
        expect(response.status, path).toBe(503)
        expect(response.headers.get('retry-after')).toBe('5')
        expect(problemBody.parse(await response.json()).code).toBe('unavailable')
      }
      expect((await fetch(`${lonely.url}/health/live`)).status).toBe(200)
      expect((await fetch(`${lonely.url}/data/categories`)).status).toBe(200)
    } finally {
      await lonely.close()
      await unavailable.close()
    }
  })
})

describe('response headers', () => {
  it('contain ETag, age and cacheability', async () => {
    const { headers } = await sendRequest('/data/tokens')
    expect(headers.get('last-modified')).toBe('Sun, 10 Mar 2024 12:01:00 GMT')
    expect(headers.get('x-data-as-of')).toBe('2024-03-10T12:01:00.000Z')
    expect(headers.get('cache-control')).toBe('public, max-age=30, stale-while-revalidate=60')
    expect(headers.get('vary')).toBe('Accept, Accept-Encoding')
    expect((await sendRequest('/data/status')).headers.get('vary')).toBe('Accept-Encoding')
    expect(headers.get('access-control-expose-headers')).toContain('X-Series-Missing')
    expect(headers.get('server-timing')).toMatch(/total;dur=/)
    expect(headers.get('x-powered-by')).toBeNull()
  })

  it('contain X-Data-Stale once the data is older than twice its cadence', async () => {
    clock.now = NOW + 9 * 60_000 - 1
    expect((await sendRequest('/data/tokens?limit=2')).headers.get('x-data-stale')).toBeNull()
    clock.now = NOW + 9 * 60_000 + 1
    expect((await sendRequest('/data/tokens?limit=2')).headers.get('x-data-stale')).toBe('true')
    clock.now = NOW
  })

  it('contain X-Data-Stale for a series up to now by the age of its prices, for every interval', async () => {
    const stale = async (query: string) =>
      (await sendRequest(`/data/tokens/historic-financial?name=uniswap&start=2024-03-09&${query}`)).headers.get(
        'x-data-stale',
      )
    const open = ['interval=5m', 'interval=1h', 'interval=7d', 'interval=1h&limit=99', 'interval=5m&end=2030-01-01']
    const closed = ['interval=5m&limit=2', 'interval=1h&end=2024-03-10T12:00:00Z']
    clock.now = NOW + 9 * 60_000 - 1
    for (const query of [...open, ...closed]) expect(await stale(query), query).toBeNull()
    clock.now = NOW + 9 * 60_000 + 1
    for (const query of open) expect(await stale(query), query).toBe('true')
    for (const query of closed) expect(await stale(query), query).toBeNull()
    clock.now = NOW
  })

  it('return a valid request id of the client and replace an invalid one', async () => {
    const sent = async (id: string) => (await sendRequest('/data/tokens', { headers: { 'x-request-id': id } })).headers
    expect((await sent('abc-1')).get('x-request-id')).toBe('abc-1')
    expect((await sent('a b<script>')).get('x-request-id')).toMatch(/^[0-9a-f-]{36}-\d+$/)
  })

  it('do not depend on the parameter _, which browsers add to bypass caches', async () => {
    // The list is in memory, so its answer is cached on its second request.
    await sendRequest('/data/tokens?limit=2&sort=name')
    const plain = await sendRequest('/data/tokens?limit=2&sort=name')
    for (const path of ['/data/tokens?_=1&limit=2&sort=name', '/data/tokens?limit=2&_=2&_=3&sort=name&_']) {
      const response = await sendRequest(path)
      expect(response.status).toBe(200)
      for (const name of ['etag', 'link']) expect(response.headers.get(name)).toBe(plain.headers.get(name))
      expect(response.headers.get('server-timing')).toMatch(/^cache/)
    }
    const { headers } = await sendRequest('/data/daos/?_=1')
    expect(headers.get('link')).toMatch(/^<\?limit=10&cursor=[^&_=]*>; rel="next", <\/data\/daos>; rel="canonical"$/)
    for (const path of ['/docs?_=1', '/health/live?_', '/openapi.json?_=1', '/llms.txt?_=1'])
      expect((await sendRequest(path)).status, path).toBe(200)
    expect((await sendRequest('/data/tokens?__=1')).status).toBe(400)
  })

  it('link other spellings of a path to the canonical path', async () => {
    const response = await sendRequest('/data/tokens/')
    expect(response.status).toBe(200)
    expect(response.headers.get('link')).toBe('</data/tokens>; rel="canonical"')
    expect((await sendRequest('/data/tokens')).headers.get('link')).toBeNull()
  })

  it('answer a preflight request', async () => {
    const response = await sendRequest('/data/tokens', { method: 'OPTIONS' })
    expect(response.status).toBe(204)
    expect(response.headers.get('access-control-allow-methods')).toBe('GET, HEAD, OPTIONS')
    const expected = 'authorization,sentry-trace,x-whatever'
    const requests = await sendRequest('/data/tokens', {
      method: 'OPTIONS',
      headers: { 'access-control-request-headers': expected },
    })
    expect(requests.headers.get('access-control-allow-headers')).toBe(expected)
    const odd = await sendRequest('/data/tokens', {
      method: 'OPTIONS',
      headers: { 'access-control-request-headers': 'a b, c;' },
    })
    expect(odd.headers.get('access-control-allow-headers')).toBe('*')
  })
})

describe('conditional requests and HEAD', () => {
  it.each(['/data/tokens', UNI, '/data/categories', '/data/chains'])('support 304 and HEAD for %s', async (path) => {
    for (const encoding of ['identity', 'gzip', 'br']) {
      const headers = { 'accept-encoding': encoding }
      const full = await sendRequest(path, { headers })
      const tag = full.headers.get('etag') ?? ''
      expect(tag).toMatch(encoding === 'identity' ? /^"[\w-]+"$/ : new RegExp(`-${encoding}"$`))
      for (const existing of [tag, `W/${tag}`, `"x", ${tag}`, '*']) {
        const response = await sendRequest(path, { headers: { ...headers, 'if-none-match': existing } })
        expect([response.status, await response.text()]).toEqual([304, ''])
        expect(response.headers.get('etag')).toBe(tag)
        expect(response.headers.get('cache-control')).toBe(full.headers.get('cache-control'))
      }
      expect((await sendRequest(path, { headers: { ...headers, 'if-none-match': '"x"' } })).status).toBe(200)
      const head = await sendRequest(path, { method: 'HEAD', headers })
      expect([head.status, head.headers.get('etag'), await head.text()]).toEqual([200, tag, ''])
      expect(head.headers.get('content-length')).toBe(full.headers.get('content-length'))
      await full.arrayBuffer()
    }
  })

  it.each(['/health/live', '/health/ready'])('return no ETag and never 304 for %s', async (path) => {
    const response = await sendRequest(path, { headers: { 'if-none-match': '*' } })
    expect([response.status, response.headers.get('etag')]).toEqual([200, null])
  })

  it('contain the same bytes in every encoding', async () => {
    const raw = (encoding: string) =>
      new Promise<Buffer>((resolve, reject) => {
        request(`${api.url}/data/tokens`, { headers: { 'accept-encoding': encoding } }, (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => resolve(Buffer.concat(chunks)))
        })
          .on('error', reject)
          .end()
      })
    expect(gunzipSync(await raw('gzip'))).toEqual(await raw('identity'))
  })
})

describe('response cache', () => {
  const volume = async (url = api.url) => {
    const response = await fetch(`${url}/data/tokens?name=aave&limit=1`)
    const [token] = (await response.json()) as { financialData: { price: number } }[]
    return { price: token?.financialData.price, from: response.headers.get('server-timing')?.split(',')[0] }
  }
  const quote = async (at: number) =>
    storeMarket(database.writer, { keys: keysOf('COMP', 'AAVE'), until: at, points: 1, stepMs: 300_000 })

  it('serves a response until one of its datasets changes', async () => {
    // A response built from cached records is cached only at the second request.
    await volume()
    const before = await volume()
    await quote(NOW - 50_000)
    changeFeed.commit('holders')
    expect(await volume()).toEqual({ ...before, from: 'cache' })
    changeFeed.commit('prices')
    const after = await volume()
    expect(after.from).toBe('made')
    expect(after.price).not.toBe(before.price)
  })

  it('caches a series with an end in the future, and counts missing points up to now', async () => {
    const path = '/data/tokens/historic-financial?name=uniswap&interval=5m&start=2024-03-10&end=2030-01-01'
    const first = await sendRequest(path)
    expect(first.headers.get('x-series-missing')).toBe('0')
    // A response built from cached chunks is cached only at the second request.
    await (await sendRequest(path)).text()
    const second = await sendRequest(path)
    expect(second.headers.get('server-timing')).toMatch(/^cache,/)
    expect(await second.text()).toBe(await first.text())
  })

  it('builds a response once for 20 concurrent requests', async () => {
    changeFeed.commit('prices')
    const all = await Promise.all(Array.from({ length: 20 }, () => volume()))
    expect(all.filter(({ from }) => from === 'made')).toHaveLength(1)
  })

  it('follows change events from Redis', async () => {
    const { url, prefix } = config.redis
    const [subscriber, publisher] = [createRedis(url, silent, 'subscriber'), createRedis(url, silent)]
    const feed = createChangeFeed(subscriber, { prefix, db: database.db, log: silent })
    await vi.waitFor(() => expect(feed.version('prices')).toBeDefined(), { timeout: 60_000 })
    const another = await startApi({ config, ...database, changeFeed: feed, now: () => NOW })
    try {
      await volume(another.url)
      expect((await volume(another.url)).from).toBe('cache')
      const receipt = new Promise((resolve) => subscriber.once('message', resolve))
      await publishChange({ db: database.writer, redis: publisher, prefix }, { dataset: 'prices' })
      await receipt
      expect((await volume(another.url)).from).toBe('made')
    } finally {
      await another.close()
      feed.close()
      publisher.disconnect()
    }
  })
})
