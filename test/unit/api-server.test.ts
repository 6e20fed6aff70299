import { once } from 'node:events'
import type { Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, it } from 'vitest'
import { createCounting } from '../../api/admission/counting.ts'
import { createApiServer } from '../../api/server.ts'
import { parseConfig } from '../../shared/config/config.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { createHandFeed, emptyLog } from '../support/api.ts'
import { noDatabase } from '../support/no-database.ts'
import { silent } from '../support/silent.ts'

const registry = loadRegistry()
let server: Server
let clients: Socket[] = []

/** Starts the API without stores. Returns its URL and a function that connects to it. */
async function start(
  env: Readonly<Record<string, string>> = {},
  more: Partial<Parameters<typeof createApiServer>[0]> = {},
): Promise<{ url: string; join: (localAddress?: string) => Promise<Socket> }> {
  server = createApiServer({
    ...{ config: parseConfig(env), db: noDatabase, registry, changeFeed: createHandFeed(), changeStream: emptyLog },
    ...{ log: silent, metrics: createMetrics('test'), ...more },
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const join = async (localAddress = '127.0.0.1') => {
    const client = connect({ port, host: '127.0.0.1', localAddress })
    clients.push(client.on('error', () => {}))
    await once(client, 'connect')
    return client
  }
  return { url: `http://127.0.0.1:${port}`, join }
}
afterEach(() => {
  for (const client of clients) client.destroy()
  clients = []
  server.closeAllConnections()
  server.close()
})

const LIVE = 'GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n'

describe('createApiServer', () => {
  describe('connections', () => {
    it('returns 429 for a connection over the limit per address, and serves other addresses', async () => {
      const { join } = await start({ CONNECTIONS_PER_ADDRESS: '3' })
      const first = await join()
      for (let count = 1; count < 3; count += 1) await join()
      const refused = await text(await join())
      expect(refused).toContain('HTTP/1.1 429 Too Many Requests')
      expect(refused).toContain('Retry-After: ')
      const second = await join('127.0.0.2')
      second.write(LIVE)
      expect(String((await once(second, 'data'))[0])).toContain('HTTP/1.1 200')
      // A closed connection frees its place.
      first.destroy()
      await expect
        .poll(async () => {
          const repeated = await join()
          repeated.write(LIVE)
          return String((await once(repeated, 'data'))[0])
        })
        .toContain('HTTP/1.1 200')
    })

    it('does not limit the connections of a trusted proxy', async () => {
      const { join } = await start({ CONNECTIONS_PER_ADDRESS: '1', TRUSTED_PROXIES: '127.0.0.1' })
      for (let count = 0; count < 3; count += 1) {
        const client = await join()
        client.write(LIVE)
        expect(String((await once(client, 'data'))[0])).toContain('HTTP/1.1 200')
      }
    })

    it('closes connections over the limit of open files', async () => {
      const { join } = await start({}, { maxConnections: 2 })
      await join()
      await join()
      const one = await join()
      await once(one.resume(), 'close')
      expect(server.maxConnections).toBe(2)
    })

    it('keeps file descriptors for the stores below the limit of the process', async () => {
      await start()
      const { userLimits } = process.report.getReport() as { userLimits: { open_files: { soft: number } } }
      expect(server.maxConnections).toBeGreaterThan(0)
      expect(server.maxConnections).toBeLessThan(userLimits.open_files.soft)
    })

    it('limits the time for the headers to 10 seconds and for the request to 30 seconds', async () => {
      await start()
      expect([server.headersTimeout, server.requestTimeout]).toEqual([10_000, 30_000])
    })
  })

  describe('request heads', () => {
    const send = async (bytes: string) => {
      const { join } = await start()
      const client = await join()
      client.write(bytes)
      return text(client)
    }

    it.each(['evil@localhost', 'a b', 'a/b', '[::1', 'a:b', 'http://a'])(
      'returns 400 for the Host %j',
      async (host) => {
        const received = await send(`GET /health/live HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
        expect(received).toContain('HTTP/1.1 400 ')
        expect(received).toContain('The Host header')
      },
    )

    it.each(['a', 'a.example.com:8080', '127.0.0.1:3000', '[::1]:3000', ''])('accepts the Host %j', async (host) => {
      const received = await send(`GET /health/live HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      expect(received).toContain('HTTP/1.1 200 ')
    })

    it('returns 400 for a head of more than 32 kB', async () => {
      const received = await send(`GET /health/live HTTP/1.1\r\nHost: a\r\nX-Large: ${'x'.repeat(33_000)}\r\n\r\n`)
      expect(received).toContain('HTTP/1.1 400 ')
      expect(received).toContain('32768 bytes')
    })

    it('answers the requests before malformed bytes', async () => {
      const received = await send(`${LIVE}${LIVE}what?\r\n\r\n`)
      expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 400'])
    })
  })

  describe('static files', () => {
    const FILES = [
      '/docs',
      '/docs/start.js',
      '/docs/assets/swagger-ui.css',
      '/docs/assets/swagger-ui-bundle.js',
    ] as const

    it.each([...FILES, '/pages/style.css', '/guides'])('supports 304, 206 and HEAD for %s', async (path) => {
      const { url } = await start()
      const request = (headers: Record<string, string>, method = 'GET') =>
        fetch(url + path, { method, headers: { 'accept-encoding': 'identity', ...headers } })
      const full = await request({})
      const bytes = Buffer.from(await full.arrayBuffer())
      const tag = String(full.headers.get('etag'))
      expect([full.status, full.headers.get('accept-ranges')]).toEqual([200, 'bytes'])
      expect(full.headers.get('content-security-policy')).toContain("default-src 'none'")

      expect((await request({ 'if-match': tag })).status).toBe(200)
      const second = await request({ 'if-match': '"x"' })
      expect([second.status, ((await second.json()) as { code: string }).code]).toEqual([412, 'precondition_failed'])
      expect((await request({ 'if-none-match': tag })).status).toBe(304)

      const part = await request({ range: 'bytes=2-5' })
      expect([part.status, part.headers.get('content-range')]).toEqual([206, `bytes 2-5/${bytes.length}`])
      expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(2, 6))).toBe(true)
      const behind = await request({ range: 'bytes=99999999-' })
      expect([behind.status, behind.headers.get('content-range')]).toEqual([416, `bytes */${bytes.length}`])

      const head = await request({}, 'HEAD')
      expect([head.status, head.headers.get('content-length')]).toEqual([200, String(bytes.length)])
    })
  })

  it('returns 412 for If-Match with another ETag, and 200 with the current one', async () => {
    const { url } = await start()
    const target = (ifMatch: string) => fetch(`${url}/data/categories`, { headers: { 'if-match': ifMatch } })
    const tag = String((await fetch(`${url}/data/categories`)).headers.get('etag'))
    expect(
      await Promise.all(['"x"', `W/${tag}`, tag, `"x", ${tag}`, '*'].map(async (one) => (await target(one)).status)),
    ).toEqual([412, 412, 200, 200, 200])
  })

  it('ignores If-Match for answers without an ETag', async () => {
    const { url } = await start()
    for (const ifMatch of ['""', '"x"', ''])
      expect((await fetch(`${url}/health/live`, { headers: { 'if-match': ifMatch } })).status, ifMatch).toBe(200)
  })

  it('sends Cache-Control: private with rate-limit headers of one client', async () => {
    const limits = {
      keys: undefined,
      anonymous: { requests: 100, seconds: 60 },
      counting: createCounting(undefined, 'test'),
    }
    const { url } = await start({}, { limits })
    for (const path of ['/data/categories', '/data/categories', '/docs', '/openapi.json']) {
      const { headers } = await fetch(url + path)
      expect(headers.get('ratelimit'), path).not.toBeNull()
      expect(headers.get('cache-control'), path).toMatch(/^private, max-age=/)
    }
    const open = await start()
    expect((await fetch(`${open.url}/data/categories`)).headers.get('cache-control')).toMatch(/^public/)
  })

  it.each([
    ['values', `id=${','.repeat(30_000)}`, 'at most 100 values'],
    ['repeated values', `name=a&`.repeat(101), 'at most 100 values'],
    ['parameters', '&'.repeat(30_000), 'at most 1000 parameters'],
  ])('returns 400 for a query with too many %s', async (_what, query, detail) => {
    const { url } = await start()
    const response = await fetch(`${url}/data/tokens?${query}`)
    expect([response.status, ((await response.json()) as { detail: string }).detail]).toEqual([
      400,
      expect.stringContaining(detail),
    ])
  })
})
