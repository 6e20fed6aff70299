import { setMaxListeners } from 'node:events'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Config } from '../../shared/config.ts'
import { createRedis } from '../../shared/redis.ts'
import type { RateLimit } from '../../workers/providers/http/rate-limit.ts'
import { createSharedRateLimit } from '../../workers/providers/http/shared-rate-limit.ts'
import { createTestConfig } from '../support/database.ts'
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
  for (const redis of connections) redis.disconnect()
})

/** A limit as another process would have it: with a connection of its own. */
function createLimit(perMinute: number, url = config.redis.url, log = silent): { limit: RateLimit; redis: Redis } {
  const redis = createRedis(url, silent)
  connections.push(redis)
  return { redis, limit: createSharedRateLimit('provider', perMinute, { redis, prefix: config.redis.prefix, log }) }
}

/** How many of the asked may go at once. Reservations follow each other, each answered before a later ping is. */
async function countGranted(asked: readonly { limit: RateLimit; redis: Redis }[], each: number): Promise<number> {
  let granted = 0
  for (const { limit } of asked) {
    for (let n = 0; n < each; n += 1) void limit.take(never).then(() => (granted += 1))
  }
  for (let n = 0; n < 2 * each + 10; n += 1) await Promise.all(asked.map(({ redis }) => redis.ping()))
  return granted
}

describe('a rate limit that processes share', () => {
  it.each([
    [5, 1],
    [60, 12],
    [100, 20],
  ])('of %i a minute lets %i through at once, whoever asks', async (perMinute, burst) => {
    const processes = [createLimit(perMinute), createLimit(perMinute), createLimit(perMinute)]
    expect(await countGranted(processes, burst)).toBe(burst)
  })

  it('lets everybody through in time', async () => {
    const { limit } = createLimit(6000)
    const other = createLimit(6000).limit
    const asked = Array.from({ length: 1300 }, (_, n) => (n % 2 === 0 ? limit : other).take(never))
    await Promise.all(asked)
  })

  it('gives the place of what is aborted to the next in line', async () => {
    const { limit, redis } = createLimit(300)
    expect(await countGranted([{ limit, redis }], 60)).toBe(60)
    const controller = new AbortController()
    const aborted = limit.take(controller.signal)
    const next = limit.take(never)
    const keys = await redis.keys(`${config.redis.prefix}:rate:*`)
    expect(keys).toEqual([`${config.redis.prefix}:rate:{provider}`])
    const before = await redis.get(String(keys[0]))
    controller.abort(new Error('stop'))
    await expect(aborted).rejects.toThrow('stop')
    await next
    expect(await redis.get(String(keys[0]))).toBe(before)
  })

  it('refuses a signal that is aborted already', async () => {
    await expect(createLimit(1).limit.take(AbortSignal.abort(new Error('stop')))).rejects.toThrow('stop')
  })

  it('is kept by each process alone while Redis is away, which is said once', async () => {
    const lines: string[] = []
    const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line).msg) })
    const { limit } = createLimit(100, 'redis://127.0.0.1:1', log)
    for (let n = 0; n < 20; n += 1) await limit.take(never)
    expect(lines).toEqual(['Redis is away: each process keeps the rate limit for itself'])
  })
})
