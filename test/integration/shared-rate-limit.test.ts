import { setMaxListeners } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Config, parseConfig } from '../../shared/config/config.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { createHttpClients, type HttpClients } from '../../workers/http/client.ts'
import { createHourLimit, createRateLimit, type RateLimit } from '../../workers/http/limits.ts'
import { ethplorer } from '../../workers/providers/ethplorer/holders.ts'
import { sendJson, startProviderServer } from '../provider-server.ts'
import { toTestToken } from '../samples.ts'
import { createTestConfig } from '../support/database.ts'
import { noDatabase } from '../support/no-database.ts'
import { silent } from '../support/silent.ts'

const never = new AbortController().signal
setMaxListeners(0, never)

let config: Config
let connections: Redis[]
beforeEach(() => {
  config = createTestConfig()
  connections = []
})
afterEach(() => {
  vi.useRealTimers()
  for (const redis of connections) redis.disconnect()
})

/** A limit in another process: with a separate connection. */
function createLimit(perMinute: number, url = config.redis.url, log = silent): { limit: RateLimit; redis: Redis } {
  const redis = createRedis(url, silent)
  connections.push(redis)
  const sharedBy = { redis, prefix: config.redis.prefix, log }
  return { redis, limit: createRateLimit('provider', perMinute, { sharedBy }) }
}

const CLOCK = "redis.call('TIME')"

/** The same, with Redis' replies to its reservations; Redis' clock stands still. */
function createObservedLimit(perMinute: number) {
  const { limit, redis } = createLimit(perMinute)
  const waits: number[] = []
  const observed = async (script: unknown, ...rest: unknown[]) => {
    expect(script).toContain(CLOCK)
    const stopped = String(script).replace(CLOCK, "{'1700000000', '0'}")
    const wait = await redis.call('EVAL', stopped, ...rest.map(String))
    waits.push(Number(wait))
    return wait
  }
  vi.spyOn(redis, 'eval').mockImplementation(observed)
  return { limit, redis, waits }
}

const until = async (isSo: () => boolean) => {
  while (!isSo()) await setImmediate()
}

describe('shared rate limit', () => {
  it.each([
    [5, 1],
    [60, 12],
    [100, 20],
  ])(
    'of %i a minute grants %i requests without a wait over all processes, and then one by one',
    async (perMinute, burst) => {
      const processes = [1, 2, 3].map(() => createObservedLimit(perMinute))
      for (const { limit } of processes) {
        // Requests that are not granted at the end of the test stay in the queue.
        for (let n = 0; n < burst + 1; n += 1) void limit.take(never)
      }
      const haveToWait = processes.map(
        ({ waits }) =>
          () =>
            waits.some((wait) => wait > 0),
      )
      for (const hasToWait of haveToWait) await until(hasToWait)
      const waits = processes.flatMap((a) => a.waits).sort((a, b) => a - b)
      expect(waits.filter((wait) => wait === 0)).toHaveLength(burst)
      const placeMs = 60_250 / (perMinute - burst + 1)
      for (const [n, wait] of waits.slice(burst).entries()) expect(Math.abs(wait - (n + 1) * placeMs)).toBeLessThan(2)
    },
  )

  it('counts the cost of a request', async () => {
    const { limit, waits } = createObservedLimit(400)
    await limit.take(never, 75)
    const waiting = [limit.take(never, 10), limit.take(never)]
    await until(() => waits.length === 2)
    const placeMs = 60_250 / (400 - 80 + 1)
    expect(Math.abs(Number(waits[1]) - 5 * placeMs)).toBeLessThan(2)
    await Promise.all(waiting)
    expect(Math.abs(Number(waits[2]) - 6 * placeMs)).toBeLessThan(2)
  })

  it('reuses the reservation of an aborted request, and reserves the rest of a larger one', async () => {
    const { limit, waits } = createObservedLimit(400)
    await limit.take(never, 80)
    const controller = new AbortController()
    const aborted = limit.take(controller.signal, 2)
    const next = [limit.take(never), limit.take(never, 3)]
    await until(() => waits.length === 2)
    controller.abort(new Error('stop'))
    await expect(aborted).rejects.toThrow('stop')
    await Promise.all(next)
    const placeMs = 60_250 / (400 - 80 + 1)
    expect(waits.map((wait) => Math.round(wait / placeMs))).toEqual([0, 2, 4])
  })

  it('grants all requests eventually', async () => {
    const { limit } = createLimit(6000)
    const second = createLimit(6000).limit
    const requestCount = Array.from({ length: 1300 }, (_, n) => (n % 2 === 0 ? limit : second).take(never))
    await Promise.all(requestCount)
  })

  it('passes the reservation of an aborted request to the next in the queue', async () => {
    const { limit, redis, waits } = createObservedLimit(1)
    await limit.take(never)
    const keys = await redis.keys(`${config.redis.prefix}:rate:*`)
    expect(keys).toEqual([`${config.redis.prefix}:rate:{provider}`])
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const controller = new AbortController()
    const aborted = limit.take(controller.signal)
    const next = limit.take(never)
    await until(() => waits.length === 2)
    controller.abort(new Error('stop'))
    await expect(aborted).rejects.toThrow('stop')
    await redis.ping()
    vi.advanceTimersByTime(Number(waits[1]))
    await next
    expect(waits).toEqual([0, 60_250])
  })

  it('rejects a signal that is already aborted', async () => {
    await expect(createLimit(1).limit.take(AbortSignal.abort(new Error('stop')))).rejects.toThrow('stop')
  })

  it('is enforced per process while Redis is unavailable, with one log line', async () => {
    const lines: string[] = []
    const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line).msg) })
    const { limit } = createLimit(100, 'redis://127.0.0.1:1', log)
    for (let n = 0; n < 20; n += 1) await limit.take(never)
    expect(lines).toEqual(['Redis is unavailable: each process applies the rate limit on its own'])
  })
})

describe('shared rate limit with a share for history', () => {
  it('reserves the rest for live requests over all processes', async () => {
    const server = await startProviderServer((_, response) => sendJson(response, {}))
    const processes = [1, 2].map(() => {
      const { redis } = createObservedLimit(1)
      const sharedBy = { redis, prefix: config.redis.prefix }
      const http = createHttpClients({ log: silent, sharedBy, historyShare: 0.5 })
      const settings = { provider: 'provider', baseUrl: server.baseUrl, timeoutMs: 60_000, maxBytes: 1_000 }
      const toClient = (clients: HttpClients) => clients.open({ ...settings, requestsPerMinute: 60 })
      return { live: toClient(http), history: toClient(http.history) }
    })
    const stop = new AbortController()
    setMaxListeners(0, stop.signal)
    const of = (path: string) => server.requests.filter(({ url }) => url.pathname === path).length
    // Redis' clock stands still: 12 of 60 requests a minute are granted without a wait, and 6 of history's 30.
    const requested = processes.flatMap(({ history }) =>
      Array.from({ length: 20 }, () => history.json({ path: '/past', signal: stop.signal })),
    )
    await until(() => of('/past') === 6)
    const [one, second] = processes
    for (let n = 0; n < 3; n += 1) {
      await one?.live.json({ path: '/now', signal: never })
      await second?.live.json({ path: '/now', signal: never })
    }
    expect([of('/now'), of('/past')]).toEqual([6, 6])
    stop.abort(new Error('stop'))
    await Promise.allSettled(requested)
    await server.close()
  })
})

describe('shared hourly limit', () => {
  const share = (url = config.redis.url, log = silent) => {
    const redis = createRedis(url, silent)
    connections.push(redis)
    return { redis, sharedBy: { redis, prefix: config.redis.prefix, log } }
  }
  const key = () => `${config.redis.prefix}:hour:{provider}`
  const hoursAgo = async (redis: Redis, hours: number) => {
    const [seconds] = await redis.time()
    return Math.round((Number(seconds) - hours * 3_600) * 1000)
  }

  it('of 16 grants 16 requests over all processes, and rejects the others for the rest of the hour', async () => {
    const limits = [1, 2, 3].map(() => createHourLimit('provider', 16, share().sharedBy))
    const grants = limits.flatMap((limit) => Array.from({ length: 16 }, () => limit.take(never)))
    const settled = await Promise.allSettled(grants)
    const refused = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
    expect(refused).toHaveLength(32)
    for (const reason of refused) {
      expect(reason).toMatchObject({ code: 'provider_exhausted' })
      expect(reason.retryAfterMs).toBeGreaterThan(59 * 60_000)
    }
  })

  it('grants requests again after an hour', async () => {
    const { redis, sharedBy } = share()
    const limit = createHourLimit('provider', 3, sharedBy)
    const [old, recent] = [await hoursAgo(redis, 1.1), await hoursAgo(redis, 0.5)]
    await redis.rpush(key(), old, old, recent)
    await limit.take(never)
    await limit.take(never)
    const error = await limit.take(never).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'provider_exhausted', retryAfterMs: expect.any(Number) })
    expect(await redis.llen(key())).toBe(3)
    expect(await redis.pttl(key())).toBeGreaterThan(3_500_000)
  })

  it('applies to all hosts of a provider and to all processes', async () => {
    const server = await startProviderServer((_, response, url) =>
      sendJson(response, url.pathname.includes('Info') ? { holdersCount: 1 } : { holders: [{ address: 'a' }] }),
    )
    const { baseUrl } = server
    const settings = { ETHPLORER_BASE_URL: baseUrl, ETHPLORER_BNB_BASE_URL: `${baseUrl}/bnb` }
    const parsed = parseConfig({
      ...settings,
      ETHPLORER_REQUESTS_PER_MINUTE: '60000',
      ETHPLORER_REQUESTS_PER_HOUR: '6',
    })
    const connect = () => {
      const { sharedBy } = share()
      const http = createHttpClients({ log: silent, sharedBy })
      return ethplorer.connect({ config: parsed, http, db: noDatabase, log: silent })
    }
    const [one, second] = [connect(), connect()]
    const on = (chain: string) => ({ ...toTestToken(1, {}), chain })
    await one.fetchHolders(on('ethereum'), 0, never)
    await second.fetchHolders(on('bnb'), 0, never)
    await second.fetchHolders(on('ethereum'), 0, never)
    for (const source of [one, second, connect()]) {
      await expect(source.fetchHolders(on('bnb'), 0, never)).rejects.toMatchObject({ code: 'provider_exhausted' })
    }
    await server.close()
    expect(server.requests).toHaveLength(6)
  })

  it('is enforced per process while Redis is unavailable, with one log line', async () => {
    const lines: string[] = []
    const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line).msg) })
    const limit = createHourLimit('provider', 2, share('redis://127.0.0.1:1', log).sharedBy)
    await limit.take(never)
    await limit.take(never)
    await expect(limit.take(never)).rejects.toMatchObject({ code: 'provider_exhausted' })
    expect(lines).toEqual(['Redis is unavailable: each process applies the rate limit on its own'])
  })
})
