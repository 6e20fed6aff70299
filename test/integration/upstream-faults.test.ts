import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { toProgram } from '../../tools/children.ts'
import { createUpstream, type Upstream } from '../upstream/server.ts'

const registry = loadRegistry()
const PATH = '/coinmarketcap/v3/cryptocurrency/quotes/latest?id=7278'
const KEY = { 'x-cmc_pro_api_key': 'demo' }

let upstream: Upstream
beforeAll(async () => {
  upstream = await createUpstream({ registry })
})
afterEach(() => {
  upstream.faults.clear()
  upstream.requests.clear()
})
afterAll(() => upstream.close())

const get = (path = PATH, init: RequestInit = {}) => fetch(upstream.url + path, { headers: KEY, ...init })

const bodyOf = async (response: Response) => JSON.parse(await response.text())

describe('fault of a stand-in', () => {
  test("returns a status in the provider's format, with a configured Retry-After", async () => {
    upstream.faults.set('coinmarketcap', { kind: 'status', status: 429, retryAfter: '0' })
    const response = await get()
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '0'])
    expect((await bodyOf(response)).status.error_code).toBe(1008)
  })

  test("returns 5xx as a gateway's HTML page", async () => {
    upstream.faults.set('coinmarketcap', { kind: 'status', status: 502 })
    const response = await get()
    expect([response.status, response.headers.get('content-type')]).toEqual([502, 'text/html; charset=utf-8'])
    expect(response.headers.get('retry-after')).toBeNull()
  })

  test("returns 500 in the provider's format if HTML is off", async () => {
    upstream.faults.set('coinmarketcap', { kind: 'status', status: 500, html: false })
    const response = await get()
    expect([response.status, (await bodyOf(response)).status.error_code]).toEqual([500, 500])
  })

  test('uses the error format of every provider', async () => {
    for (const name of ['coingecko', 'defillama']) upstream.faults.set(name, { kind: 'status', status: 429 })
    const gecko = await get('/coingecko/coins/markets?vs_currency=usd')
    const llama = await get('/defillama/protocols')
    expect((await bodyOf(gecko)).status.error_code).toBe(429)
    expect(await llama.text()).toBe('Too many requests')
  })

  test('accepts a request and never responds', async () => {
    upstream.faults.set('coinmarketcap', { kind: 'timeout' })
    const error = await get(PATH, { signal: AbortSignal.timeout(50) }).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ name: 'TimeoutError' })
    expect(upstream.requests.count('coinmarketcap')).toBe(1)
  })

  test('resets the connection', async () => {
    upstream.faults.set('coinmarketcap', { kind: 'reset' })
    const error = await get().catch((reason: unknown) => reason)
    expect(error).toMatchObject({ cause: { code: expect.stringMatching(/ECONNRESET|UND_ERR_SOCKET/) } })
  })

  test('cuts a body in half under the full content-length', async () => {
    upstream.faults.set('coinmarketcap', { kind: 'truncate' }, { times: 1 })
    const cut = await get()
    const full = await get()
    expect(cut.status).toBe(200)
    expect(cut.headers.get('content-length')).toBe(full.headers.get('content-length'))
    await expect(cut.text()).rejects.toThrow()
  })

  test('returns 200 with a login page', async () => {
    upstream.faults.set('coinmarketcap', { kind: 'content-type' })
    const response = await get()
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  })

  test('returns 200 without data', async () => {
    upstream.faults.set('coinmarketcap', { kind: 'empty' })
    const body = await bodyOf(await get())
    expect([body.status.error_code, body.data]).toEqual([0, []])
  })

  test('ends after its count, and the next fault applies', async () => {
    upstream.faults.set('coinmarketcap', { kind: 'status', status: 429 }, { times: 2 })
    upstream.faults.set('coinmarketcap', { kind: 'status', status: 503 }, { times: 1 })
    const statuses: number[] = []
    for (let requestCount = 0; requestCount < 4; requestCount += 1) statuses.push((await get()).status)
    expect(statuses).toEqual([429, 429, 503, 200])
  })

  test('applies only to its provider and matching paths', async () => {
    upstream.faults.set('coinmarketcap', { kind: 'status', status: 500 }, { match: 'id=7083' })
    expect((await get()).status).toBe(200)
    expect((await get(PATH.replace('7278', '7083'))).status).toBe(500)
    expect((await get('/defillama/protocols')).status).toBe(200)
  })
})

test('counts requests by provider and path', async () => {
  await Promise.all([get(), get(), get('/defillama/protocols')])
  expect(upstream.requests.count('coinmarketcap')).toBe(2)
  expect(upstream.requests.count('coinmarketcap', 'historical')).toBe(0)
  expect(upstream.requests.all()).toContainEqual({ provider: 'defillama', path: '/protocols', count: 1 })
})

test("rejects requests over a provider's limit until the next minute", async () => {
  let clock = Date.UTC(2026, 0, 1)
  const limited = await createUpstream({ registry, now: () => clock, limits: { coinmarketcap: { perMinute: 2 } } })
  const status = async () => (await fetch(limited.url + PATH, { headers: KEY })).status
  expect([await status(), await status(), await status()]).toEqual([200, 200, 429])
  clock += 60_000
  expect(await status()).toBe(200)
  await limited.close()
})

test('closes while a request hangs', async () => {
  const hanging = await createUpstream({ registry })
  hanging.faults.set('coinmarketcap', { kind: 'timeout' })
  const outcome = fetch(hanging.url + PATH, { headers: KEY }).catch((reason: unknown) => reason)
  while (hanging.requests.count('coinmarketcap') === 0) await new Promise(setImmediate)
  await hanging.close()
  expect(await outcome).toBeInstanceOf(TypeError)
})

test('runs as a program: prints its URL, accepts faults over HTTP, exits on SIGTERM', async () => {
  const main = join(import.meta.dirname, '../upstream/main.ts')
  const child = spawn(process.execPath, [...toProgram(main), '--port', '0', '--seed', '3'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, UPSTREAM_DATA_DIR: '' },
  })
  const exited = once(child, 'exit')
  const [line] = await once(createInterface(child.stdout), 'line')
  const { url, port } = JSON.parse(String(line))
  expect(url).toBe(`http://127.0.0.1:${port}`)

  const order = { provider: 'coinmarketcap', fault: { kind: 'status', status: 429 }, scope: { times: 1 } }
  const post = (body: unknown) => fetch(`${url}/_faults`, { method: 'POST', body: JSON.stringify(body) })
  expect((await post(order)).status).toBe(200)
  expect((await post({ ...order, fault: { kind: 'surprise' } })).status).toBe(400)
  expect((await fetch(url + PATH, { headers: KEY })).status).toBe(429)
  await post({ ...order, scope: {} })
  await fetch(`${url}/_faults`, { method: 'DELETE' })
  expect((await fetch(url + PATH, { headers: KEY })).status).toBe(200)
  expect(await (await fetch(`${url}/_requests`)).json()).toEqual([
    { provider: 'coinmarketcap', path: PATH.slice('/coinmarketcap'.length, PATH.indexOf('?')), count: 2 },
  ])

  child.kill('SIGTERM')
  expect(await exited).toEqual([0, null])
})
