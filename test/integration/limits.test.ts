import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCounting } from '../../api/admission/counting.ts'
import type { Counting } from '../../api/admission/types.ts'
import { problemBody } from '../../api/problem/problem.ts'
import { readKeys } from '../../shared/keys/key-file.ts'
import { openKeyRing } from '../../shared/keys/key-ring.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { type Child, startChild, untilReady } from '../../tools/children.ts'
import { startRedis } from '../../tools/redis-server.ts'
import { runKeys } from '../../workers/commands/keys.ts'
import { createApiDatabase, createHandFeed, startApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { createRandom } from '../support/random.ts'
import { silent } from '../support/silent.ts'
import { toStoreSettings } from '../support/store-settings.ts'

const CONNECTIONS = 64
const REQUESTS = 1_500
/** Longer than any test takes. */
const WINDOW = 3_600
const PATH = '/data/categories'
const [UNI, AAVE] = ['UNI', 'AAVE'].map((symbol) => loadRegistry().tokens.find((one) => one.symbol === symbol)?.id)
const UNISWAP = loadRegistry().daos.find(({ name }) => name === 'Uniswap')?.id

const config = createTestConfig()
const folder = mkdtempSync(join(tmpdir(), 'dao-data-keys-'))
const file = join(folder, 'keys.json')
let database: Awaited<ReturnType<typeof createApiDatabase>>
const closers: (() => unknown)[] = []

beforeAll(async () => {
  database = await createApiDatabase(config)
})
afterAll(async () => {
  for (const close of closers.reverse()) await close()
  rmSync(folder, { recursive: true, force: true })
  await database?.drop()
})

const createKey = (name: string, limit: string) =>
  String(runKeys(file, ['create', name], limit, Date.now()).split('\n')[0])

/** A service with limits, in this process. */
async function start(options: { anonymous?: number; redisUrl?: string; trustedProxies?: string[] } = {}) {
  const redis = createRedis(options.redisUrl ?? config.redis.url, silent, 'counter')
  await new Promise((resolve) => redis.once('ready', resolve).once('error', resolve))
  const keys = openKeyRing(file, silent)
  closers.push(() => redis.disconnect(), keys.close)
  const { anonymous: requests } = options
  const anonymous = requests === undefined ? undefined : { requests, seconds: WINDOW }
  const limits = { keys, anonymous, counting: createCounting(redis, `${config.redis.prefix}:${closers.length}`) }
  const api = { ...config.api, trustedProxies: options.trustedProxies ?? [] }
  const service = await startApi({ config: { ...config, api }, ...database, changeFeed: createHandFeed(), limits })
  closers.push(service.close)
  return {
    request: (path = PATH, headers: Record<string, string> = {}) => fetch(service.url + path, { headers }),
    url: service.url,
  }
}

/** The number of responses of each status for many requests. */
async function crowd(urls: readonly string[], headers: Record<string, string> = {}): Promise<Map<number, number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  const statuses = new Map<number, number>()
  const one = (url: string) =>
    new Promise<void>((resolve, reject) => {
      get(url, { agent, headers }, (response) => {
        const { statusCode = 0 } = response
        statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1)
        response.resume().once('end', resolve)
      }).once('error', reject)
    })
  await Promise.all(Array.from({ length: REQUESTS }, (_, index) => one(String(urls[index % urls.length]))))
  agent.destroy()
  return statuses
}

describe('the cost of requests', () => {
  const remainingOf = (response: Response) => Number(/;r=(\d+);/.exec(String(response.headers.get('ratelimit')))?.[1])

  it.each([
    ['a list', '/data/tokens?limit=100', 1],
    ['a day of prices', `/data/tokens/historic-financial?id=${UNI}&start=2024-01-01&end=2024-01-02&interval=5m`, 1],
    ['30 days of prices', `/data/tokens/historic-financial?id=${UNI}&start=2024-01-01&end=2024-01-31&interval=5m`, 2],
    [
      'two tokens as Parquet',
      `/data/tokens/historic-financial?id=${UNI}&id=${AAVE}&start=2024-01-01&end=2024-01-31&interval=5m&format=parquet`,
      4,
    ],
    [
      'coverage of one token for a month',
      `/data/status/coverage?dataset=prices&id=${UNI}&start=2024-01-01&end=2024-02-01`,
      1,
    ],
    ['sums like for like', '/data/aggregated/market-cap?basis=like-for-like&start=2024-01-01&end=2024-04-10', 3],
    ['votes of a DAO', `/data/daos/governance/votes?id=${UNISWAP}&proposal=${'0'.repeat(24)}`, 5],
  ])('is counted in units: %s', async (_what, path, units) => {
    const { request } = await start({ anonymous: 1_000 })
    expect(1_000 - remainingOf(await request(path))).toBe(units)
  })

  it('is one unit for a cached answer, and for HEAD and Range of a file that exists', async () => {
    const { request, url } = await start({ anonymous: 1_000 })
    const path = `/data/tokens/historic-financial?id=${UNI}&start=2024-01-01&end=2024-01-31&interval=5m`
    const first = remainingOf(await request(path))
    expect(first - remainingOf(await request(path))).toBe(1)
    const long = `/data/tokens/historic-financial?id=${UNI}&start=2023-01-01&end=2024-01-01&interval=5m&format=parquet`
    const head = await fetch(url + long, { method: 'HEAD' })
    const after = remainingOf(head)
    expect(first - 1 - after).toBe(22)
    const range = await request(long, { range: 'bytes=0-1' })
    expect([range.status, after - remainingOf(range)]).toEqual([206, 1])
  })

  it('is one unit for a rejection, which is the same when it is repeated', async () => {
    const { request } = await start({ anonymous: 10 })
    const filters = Array.from({ length: 10 }, (_, index) => `filter=financialData.percentChanges${index}d>1`)
    const path = `/data/tokens?${filters.join('&')}`
    const [first, second] = [await request(path), await request(path)]
    expect([first.status, second.status, remainingOf(first), remainingOf(second)]).toEqual([400, 400, 9, 8])
    const [one, other] = [problemBody.parse(await first.json()), problemBody.parse(await second.json())]
    expect({ ...other, requestId: '' }).toEqual({ ...one, requestId: '' })
    expect([one, other].map(({ requestId }) => requestId)).toEqual(
      [first, second].map(({ headers }) => headers.get('x-request-id')),
    )
  })

  it('may exceed what remains, but not begin without a remaining unit', async () => {
    const { request } = await start({ anonymous: 3 })
    const path = `/data/tokens/historic-financial?id=${UNI}&id=${AAVE}&start=2024-01-01&end=2024-01-31&interval=5m&format=csv`
    const [first, second] = [await request(path), await request(`${path}&order=desc`)]
    expect([first.status, remainingOf(first), second.status]).toEqual([200, 0, 429])
  })
})

describe('API keys', () => {
  it('are shown once, stored as hashes in a private file, listed and revoked', () => {
    const key = createKey('a notebook', '5/60')
    const [stored] = readKeys(file)
    expect(key).toMatch(new RegExp(`^daod_${stored?.id}_[0-9a-f]{48}$`))
    expect(JSON.stringify(readKeys(file))).not.toContain(key.slice(14))
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(runKeys(file, ['list'], '', 0)).toContain('a notebook')
    runKeys(file, ['revoke', String(stored?.id)], '', Date.now())
    expect(readKeys(file)[0]?.revokedAt).not.toBeNull()
    expect(() => runKeys(file, ['revoke', 'ffffffff'], '', 0)).toThrow('there is no key')
    expect(() => runKeys(file, ['create', 'x'], 'many', 0)).toThrow('--limit must be')
    expect(() => runKeys(file, [], '', 0)).toThrow('npm run keys')
    expect(() => runKeys(file, ['create', ' '], '5/60', 0)).toThrow('create takes a name')
    expect(readKeys(file)).toHaveLength(1)
  })

  it('reject concurrent changes, so that none is lost', () => {
    const before = readKeys(file)
    writeFileSync(`${file}.new`, '')
    expect(() => createKey('too', '5/60')).toThrow('another process is changing the file')
    rmSync(`${file}.new`)
    expect(readKeys(file)).toEqual(before)
    createKey('one after the other', '5/60')
    expect(readKeys(file)).toHaveLength(before.length + 1)
  })

  it('have separate limits, with either header, and return their use', async () => {
    const key = createKey('a program', '4/3600')
    const { request } = await start({ anonymous: 1 })
    const first = await request(PATH, { 'x-api-key': key })
    expect(first.status).toBe(200)
    expect(first.headers.get('ratelimit-policy')).toBe('"key";q=4;w=3600')
    expect(first.headers.get('ratelimit')).toBe('"key";r=3;t=3600')
    // Cached by now: it counts like an uncached request.
    const cached = await request(PATH, { authorization: `Bearer ${key}` })
    expect(cached.headers.get('server-timing')).toMatch(/^cache/)
    expect(cached.headers.get('ratelimit')).toMatch(/^"key";r=2;t=\d+$/)
    expect(cached.headers.get('access-control-expose-headers')).toContain('RateLimit-Policy, RateLimit')
    const use = await (await request('/data/usage', { 'x-api-key': key })).json()
    expect(use).toMatchObject({
      key: { name: 'a program' },
      limit: { requests: 4, seconds: 3600, used: 3, remaining: 1 },
    })
    expect((await request('/data/nowhere', { 'x-api-key': key })).headers.get('ratelimit')).toMatch(/^"key";r=0/)
    const over = await request(PATH, { 'x-api-key': key })
    expect(over.status).toBe(429)
    expect(problemBody.parse(await over.json()).code).toBe('rate_limited')
    expect(Number(over.headers.get('retry-after'))).toBeGreaterThan(WINDOW - 300)
    expect(over.headers.get('ratelimit')).toMatch(/^"key";r=0;t=\d+$/)
    // No request was counted for the address.
    expect((await request(PATH)).headers.get('ratelimit')).toBe('"address";r=0;t=3600')
  })

  it('are rejected if invalid, and accepted when the file has them', async () => {
    const { request } = await start()
    expect((await request(PATH)).headers.get('ratelimit')).toBeNull()
    const wrong = await request(PATH, { 'x-api-key': `daod_00000000_${'0'.repeat(48)}` })
    expect([wrong.status, wrong.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    expect(problemBody.parse(await wrong.json()).code).toBe('invalid_key')
    const key = createKey('made later', '1000/60')
    await expect.poll(async () => (await request(PATH, { 'x-api-key': key })).status).toBe(200)
    const before = readKeys(file)
    writeFileSync(file, JSON.stringify({ keys: before.map((one) => ({ ...one, revokedAt: one.createdAt })) }))
    await expect.poll(async () => (await request(PATH, { 'x-api-key': key })).status).toBe(401)
  })
})

describe('file of API keys', () => {
  it('is reported at startup if missing, and its keys stay valid if it is deleted', async () => {
    const path = join(folder, 'made-later.json')
    const messages: string[] = []
    const log = pino({}, { write: (line: string) => void messages.push(JSON.parse(line).msg) })
    const keys = openKeyRing(path, log)
    closers.push(keys.close)
    expect(messages.splice(0)).toEqual([expect.stringContaining('the file does not exist yet')])
    expect(() => runKeys(path, ['list'], '', 0)).toThrow('no such file')
    const key = String(runKeys(path, ['create', 'a notebook'], '5/60', 0).split('\n')[0])
    await expect.poll(() => keys.find(key)?.name).toBe('a notebook')
    rmSync(path)
    await expect.poll(() => messages).toEqual([expect.stringContaining('the previous keys remain valid')])
    expect(keys.find(key)?.name).toBe('a notebook')
  })
})

describe('rate limits', () => {
  it('apply per address, which only trusted proxies may set', async () => {
    const plain = await start({ anonymous: 2 })
    const forwarded = (address: string) => ({ 'x-forwarded-for': address })
    const statuses: number[] = []
    for (const n of [1, 2, 3]) statuses.push((await plain.request(PATH, forwarded(`192.0.2.${n}`))).status)
    expect(statuses).toEqual([200, 200, 429])
    const behind = await start({ anonymous: 1, trustedProxies: ['127.0.0.0/8', '10.0.0.1'] })
    // Addresses before the last untrusted hop may be forged.
    const queries = [
      '192.0.2.1',
      '6.6.6.6, 192.0.2.1, 10.0.0.1',
      '192.0.2.2',
      '2001:db8::1',
      '2001:db8::2',
      '2001:db8:0:1::1',
    ]
    const answers: number[] = []
    for (const address of queries) answers.push((await behind.request(PATH, forwarded(address))).status)
    expect(answers).toEqual([200, 429, 200, 200, 429, 200])
  })

  it('count an invalid key for its address', async () => {
    const { request } = await start({ anonymous: 1 })
    const wrong = { 'x-api-key': 'none of them' }
    const statuses: number[] = []
    for (const headers of [wrong, wrong, {}]) statuses.push((await request(PATH, headers)).status)
    expect(statuses).toEqual([401, 429, 429])
  })

  it('restart when they are changed', async () => {
    const counting = createCounting(undefined, 'test')
    const isWithin = (requests: number) =>
      new Promise<boolean>((resolve) => {
        counting.count({ client: 'somebody', allowance: { requests, seconds: WINDOW }, units: 1 }, (standing) =>
          resolve(standing.isWithin),
        )
      })
    expect([await isWithin(1), await isWithin(1), await isWithin(2)]).toEqual([true, false, true])
  })

  it('are enforced per process while Redis does not respond', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'dao-data-redis-'))
    const own = await startRedis(dir)
    closers.push(async () => {
      own.child.kill('SIGCONT')
      await own.stop()
      rmSync(dir, { recursive: true, force: true })
    })
    const { request } = await start({ anonymous: 2, redisUrl: own.url })
    expect((await request()).headers.get('ratelimit')).toMatch(/^"address";r=1;/)
    own.child.kill('SIGSTOP')
    const statuses: number[] = []
    for (const _ of [1, 2, 3]) statuses.push((await request()).status)
    expect(statuses).toEqual([200, 200, 429])
  })

  it('exclude health checks and CORS preflight requests', async () => {
    const { request, url } = await start({ anonymous: 1 })
    expect((await request()).status).toBe(200)
    expect((await request()).status).toBe(429)
    expect((await request('/health/live')).status).toBe(200)
    expect((await fetch(url + PATH, { method: 'OPTIONS' })).status).toBe(204)
    expect((await request('/reference')).status).toBe(429)
  })

  it('are enforced per process without Redis', async () => {
    const [one, second] = [
      await start({ anonymous: 500, redisUrl: 'redis://127.0.0.1:1' }),
      await start({ anonymous: 500, redisUrl: 'redis://127.0.0.1:1' }),
    ]
    for (const { url } of [one, second])
      expect(await crowd([url + PATH])).toEqual(
        new Map([
          [200, 500],
          [429, REQUESTS - 500],
        ]),
      )
  })
})

describe('rate limits over two processes', () => {
  let child: Child
  let url: string
  let key: string
  beforeAll(async () => {
    key = createKey('a crowd', `700/${WINDOW}`)
    child = startChild('api', join(import.meta.dirname, '../../api/main.ts'), {
      ...toStoreSettings(config),
      ...{ API_PORT: '0', API_OPS_PORT: '0', API_PROCESSES: '2', API_DRAIN_SECONDS: '0', LOG_LEVEL: 'silent' },
      ...{ RATE_LIMIT_ANONYMOUS: `400/${WINDOW}`, API_KEYS_FILE: file },
    })
    url = String((await untilReady(child)).url)
  })
  afterAll(() => child?.stop())

  it.each([
    ['an address', 400, () => ({})],
    ['a key', 700, () => ({ 'x-api-key': key })],
  ] as const)(`are exact for %s with ${CONNECTIONS} connections`, async (_who, most, headers) => {
    expect(await crowd([url + PATH, `${url}/data/chains`], headers())).toEqual(
      new Map([
        [200, most],
        [429, REQUESTS - most],
      ]),
    )
  })
})

describe('positions in a window', () => {
  it('are granted once over all processes', async () => {
    const allowance = { requests: 5_000, seconds: WINDOW }
    const { pick, below } = createRandom(1)
    const redis = createRedis(config.redis.url, silent, 'counter')
    closers.push(() => redis.disconnect())
    await new Promise((resolve) => redis.once('ready', resolve))
    let statements = 0
    const counted = new Proxy(redis, {
      get: (target, name) => {
        if (name === 'rlflxIncr') statements += 1
        const member = Reflect.get(target, name)
        return typeof member === 'function' ? member.bind(target) : member
      },
    })
    const processes = [1, 2, 3].map(() => createCounting(counted, `${config.redis.prefix}:positions`))
    const input: number[] = []
    const countRequest = (counting: Counting) =>
      new Promise<boolean>((resolve, reject) => {
        counting.count({ client: 'somebody', allowance, units: 1 }, ({ isWithin, remaining }, error) => {
          if (error !== undefined) return reject(error)
          if (isWithin) input.push(remaining)
          resolve(isWithin)
        })
      })
    let isRemaining = true
    while (isRemaining) {
      const crowd = processes.flatMap((one) =>
        Array.from({ length: pick([1, 2, 30]) + below(3) }, () => countRequest(one)),
      )
      const answers = await Promise.all(crowd)
      isRemaining = answers.some(Boolean)
    }
    // Each request returns its position in the window: all positions, without duplicates or gaps.
    expect(input.sort((a, b) => a - b)).toEqual(Array.from({ length: allowance.requests }, (_, index) => index))
    // One command counts the requests that arrived during the one before.
    expect(statements).toBeLessThan(allowance.requests / 5)
  })
})

it('responses with limits of a client are not cached for other clients', async () => {
  const { url } = await start({ anonymous: 1_000 })
  const page = `${config.api.publicUrl}/tokens/${UNI}`
  const wasm = readdirSync(join(import.meta.dirname, '../../web/dist/assets')).find((name) => name.endsWith('.wasm.gz'))
  for (const path of [
    PATH,
    '/openapi.json',
    '/guides',
    `/oembed?url=${encodeURIComponent(page)}`,
    `/og/tokens/${UNI}.png`,
    `/assets/${wasm?.replace('.gz', '')}`,
  ]) {
    const { headers, status } = await fetch(url + path, { method: 'HEAD', redirect: 'manual' })
    expect([path, status, headers.has('ratelimit')]).toEqual([path, status < 400 ? status : 'below 400', true])
    expect([path, headers.get('cache-control')]).not.toEqual([path, expect.stringContaining('public')])
  }
})
