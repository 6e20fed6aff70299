import type { Redis } from 'ioredis'
import { LRUCache } from 'lru-cache'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import type { Allowance } from '../../shared/keys/allowance.ts'
import { requireWritable } from '../../shared/queue/redis.ts'
import type { Counting, OnCounted } from './types.ts'

/** A client's window, as of the last command of this process. */
interface Window {
  /** Units that all processes have counted in the window. */
  last: number
  /** End of the window, in milliseconds of this process's monotonic clock. */
  endsAt: number
  /** Units that the next command counts. */
  waiting: { readonly units: number; readonly onCounted: OnCounted }[]
  isCounting: boolean
}

/** Maximum number of clients with a window in memory. Each request of other clients takes a command. */
const MAX_WINDOWS = 10_000

/** Whether the quota is used up until the window ends: further requests need no command. */
const isUsedUp = ({ last, endsAt }: Window, { requests }: Allowance) => last >= requests && performance.now() < endsAt

/** Reports the result for units that end at a position in the window. */
const report = (
  { endsAt }: Window,
  { requests }: Allowance,
  { units, onCounted }: Window['waiting'][number],
  end: number,
) =>
  onCounted({
    isWithin: end - units < requests,
    remaining: Math.max(0, requests - end),
    resetMs: Math.max(0, endsAt - performance.now()),
  })

/** Rejects units without a command. */
const reject = (window: Window, allowance: Allowance, one: Window['waiting'][number]) =>
  report(window, allowance, one, window.last + one.units)

/**
 * Counts requests in windows that begin with a client's first request: over all processes through Redis, or per process
 * while Redis is unavailable. One command counts all requests that arrived during the previous one.
 */
export function createCounting(redis: Redis | undefined, prefix: string): Counting {
  const limiters = new Map<string, RateLimiterRedis | RateLimiterMemory>()
  const windows = new LRUCache<string, Window>({ max: MAX_WINDOWS })
  const createLimiter = (name: string, { requests: points, seconds: duration }: Allowance) => {
    const settings = { points, duration, keyPrefix: `${prefix}:limit:${name}` }
    const alone = new RateLimiterMemory(settings)
    const shared = { storeClient: redis, rejectIfRedisNotReady: true, insuranceLimiter: alone }
    const limiter = redis === undefined ? alone : new RateLimiterRedis({ ...settings, ...shared })
    limiters.set(name, limiter)
    return limiter
  }
  /** Counts the waiting requests with one command. */
  const countWaiting = async (clientKey: string, allowance: Allowance, window: Window): Promise<void> => {
    const name = `${allowance.requests}/${allowance.seconds}`
    const limiter = limiters.get(name) ?? createLimiter(name, allowance)
    const counted = window.waiting.splice(0)
    const units = counted.reduce((sum, one) => sum + one.units, 0)
    try {
      // Over its limit the library rejects with the state of the window.
      const state = await limiter.consume(clientKey, units).catch((over: unknown) => {
        if (over instanceof RateLimiterRes) return over
        throw over
      })
      window.endsAt = performance.now() + state.msBeforeNext
      window.last = state.consumedPoints
      let end = state.consumedPoints - units
      for (const one of counted) {
        end += one.units
        report(window, allowance, one, end)
      }
    } catch (error) {
      for (const { onCounted } of counted) onCounted({ isWithin: false, remaining: 0, resetMs: 0 }, error)
    }
  }
  const countAll = async (clientKey: string, allowance: Allowance, window: Window): Promise<void> => {
    window.isCounting = true
    while (window.waiting.length > 0) {
      if (isUsedUp(window, allowance)) for (const one of window.waiting.splice(0)) reject(window, allowance, one)
      else await countWaiting(clientKey, allowance, window)
    }
    window.isCounting = false
  }
  return {
    isShared: async () => {
      if (redis?.status !== 'ready') return false
      return requireWritable(redis, [prefix]).then(
        () => true,
        () => false,
      )
    },
    count: ({ client: clientKey, allowance, units }, onCounted) => {
      // A changed allowance begins another window.
      const windowKey = `${clientKey} ${allowance.requests}/${allowance.seconds}`
      const window = windows.get(windowKey) ?? { last: 0, endsAt: 0, waiting: [], isCounting: false }
      const one = { units, onCounted }
      if (!window.isCounting && isUsedUp(window, allowance)) return reject(window, allowance, one)
      windows.set(windowKey, window)
      window.waiting.push(one)
      if (!window.isCounting) void countAll(clientKey, allowance, window)
    },
  }
}
