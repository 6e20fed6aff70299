import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { pino } from 'pino'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createRemoteSource } from '../../api/mcp/source.ts'
import { parseConfig } from '../../shared/config/config.ts'
import { createRedactor, findSecrets } from '../../shared/config/secrets.ts'
import { createHttpClients } from '../../workers/http/client.ts'
import { silent } from '../support/silent.ts'

const { signal } = new AbortController()
const PASSWORD = 'hidden-from-logs'

async function listen(server: ReturnType<typeof createServer>): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => sockets.add(socket))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** A proxy that records requests and connects every tunnel to `port`. */
async function startProxy(port: number, status?: number) {
  const requests: { to: string | undefined; credentials: string | undefined }[] = []
  const note = (to: string | undefined, { headers }: { headers: Record<string, unknown> }) =>
    requests.push({ to, credentials: headers['proxy-authorization'] as string | undefined })
  const server = createServer((request, response) => {
    note(request.url, request)
    response.writeHead(status ?? 200, { 'content-type': 'application/json' }).end('{"by":"proxy"}')
  })
  server.on('connect', (request, socket) => {
    note(request.url, request)
    socket.on('error', () => undefined)
    if (status !== undefined) return void socket.end(`HTTP/1.1 ${status} No\r\n\r\n`)
    const onward = connect(port, '127.0.0.1', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'))
    socket.pipe(onward).pipe(socket)
    onward.on('error', () => undefined)
  })
  return { asked: requests, url: `http://user:${PASSWORD}@127.0.0.1:${await listen(server)}` }
}

async function startProvider() {
  const seen: unknown[] = []
  const port = await listen(
    createServer((request, response) => {
      seen.push(request.url)
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"by":"provider"}')
    }),
  )
  return { port, seen }
}

function open(env: Record<string, string>, baseUrl: string, log = silent) {
  const { proxy } = parseConfig(env)
  const http = createHttpClients({ log, proxy, backoffMs: 1 })
  return http.open({ provider: 'x', baseUrl, timeoutMs: 10_000, maxBytes: 1_000, requestsPerMinute: 600 })
}

const BASIC = `Basic ${Buffer.from(`user:${PASSWORD}`).toString('base64')}`

it('createRemoteSource() sends requests to the API through the proxy of the settings', async () => {
  const proxy = await startProxy(0)
  const source = createRemoteSource('http://api.example', parseConfig({ HTTP_PROXY: proxy.url }))
  expect((await source.request('/data/status', signal)).text).toBe('{"by":"proxy"}')
  expect(proxy.asked).toEqual([{ to: 'http://api.example/data/status', credentials: BASIC }])
})

describe('createHttpClients with proxies', () => {
  it('sends requests to http hosts to the proxy, with its credentials', async () => {
    const proxy = await startProxy(0)
    const client = open({ HTTP_PROXY: proxy.url }, 'http://provider.example/api')
    expect(await client.json({ path: '/a', query: { b: 1 }, signal })).toEqual({ by: 'proxy' })
    expect(proxy.asked).toEqual([{ to: 'http://provider.example/api/a?b=1', credentials: BASIC }])
  })

  it('opens a tunnel to https hosts, through HTTPS_PROXY or else HTTP_PROXY', async () => {
    const [wrong, right] = [await startProxy(0), await startProxy(0, 407)]
    const both = open({ HTTP_PROXY: wrong.url, HTTPS_PROXY: right.url }, 'https://provider.example')
    await expect(both.json({ path: '/a', signal, retries: 0 })).rejects.toMatchObject({
      code: 'provider_unavailable',
      message: expect.stringContaining('407'),
    })
    await expect(
      open({ http_proxy: right.url }, 'https://provider.example').json({ path: '/a', signal, retries: 0 }),
    ).rejects.toThrow('407')
    const tunnel = { to: 'provider.example:443', credentials: BASIC }
    expect([wrong.asked, right.asked]).toEqual([[], [tunnel, tunnel]])
  })

  it.each([
    ['this machine', '127.0.0.1', {}],
    ['this machine, by name', 'localhost', {}],
    ['a host of NO_PROXY', 'localhost', { NO_PROXY: 'example.org, localhost' }],
    ['every host if NO_PROXY is *', '127.0.0.1', { no_proxy: '*' }],
  ])('connects directly to %s', async (_what, host, env) => {
    const [proxy, { port, seen }] = [await startProxy(0), await startProvider()]
    const client = open({ HTTP_PROXY: proxy.url, ...env }, `http://${host}:${port}`)
    expect(await client.json({ path: '/a', signal })).toEqual({ by: 'provider' })
    expect([proxy.asked, seen]).toEqual([[], ['/a']])
  })

  it('does not reveal the credentials of a proxy', async () => {
    const proxy = await startProxy(0, 407)
    const config = parseConfig({ HTTPS_PROXY: proxy.url })
    expect(findSecrets(config)).toContain(PASSWORD)
    const lines: string[] = []
    const log = pino({}, { write: (line: string) => void lines.push(line) })
    const failed = open({ HTTPS_PROXY: proxy.url }, 'https://provider.example', log).json({ path: '/a', signal })
    const { message } = await failed.then(
      () => new Error('answered'),
      (error: Error) => error,
    )
    expect(lines.length).toBeGreaterThan(0)
    expect(`${message}${lines.join('')}`).not.toContain(PASSWORD)
    expect(createRedactor(findSecrets(config))(`to ${proxy.url}`)).not.toContain(PASSWORD)
  })
})

describe('proxy settings', () => {
  it('accept host and port without a scheme, and prefer lower-case names', () => {
    const env = {
      HTTP_PROXY: 'proxy.example:3128',
      HTTPS_PROXY: 'http://other.example',
      https_proxy: 'https://first.example',
    }
    expect(parseConfig(env).proxy).toEqual({
      http: 'http://proxy.example:3128',
      https: 'https://first.example',
      none: '',
    })
  })

  it('are rejected without showing them if they name no http proxy', () => {
    const wrong = () => parseConfig({ HTTPS_PROXY: `socks5://user:${PASSWORD}@proxy.example` })
    expect(wrong).toThrow('HTTPS_PROXY: must be the http or https URL of a proxy')
    expect(wrong).not.toThrow(PASSWORD)
  })
})
