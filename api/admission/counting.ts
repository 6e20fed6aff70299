import type { Redis } from 'ioredis'
import { LRUCache } from 'lru-cache'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import type { Allowance } from '../../shared/keys/allowance.ts'
import { requireWritable } from '../../shared/queue/redis.ts'
import type { Counting, OnCounted } from './types.ts'

/** A client's window, as of the last command of this process. */
interface Window {
  /** Positions in the window that are reserved for the next requests of this process. */
  next: number
  last: number
  /** End of the window, in milliseconds of this process's monotonic clock. */
  endsAt: number
  /** Units that the next command counts. */
  waiting: { readonly units: number; readonly onCounted: OnCounted }[]
  isCounting: boolean
}

/**
 * At least `BURST` requests in one command are a burst. The process then reserves `AHEAD` further requests for each
 * request of the burst, but at most `MOST_AHEAD` of the remaining quota: no other process can use the reserved part.
 * Without reservations, counting eight concurrent requests takes four times the processor time.
 */
const BURST = 4
const AHEAD = 16
const MOST_AHEAD = 1 / 64
/** Maximum number of clients with a window in memory. Each request of other clients takes a command. */
const MAX_WINDOWS = 10_000

const isOpen = ({ endsAt }: Window) => performance.now() < endsAt

/** Whether the next units need no command: their positions are reserved, or the quota is used up. */
const isKnown = (window: Window, { requests }: Allowance, units: number) =>
  isOpen(window) && (window.next + units - 1 <= window.last || window.last >= requests)

/** Assigns the next positions in the window to units, and reports the remaining quota. */
function take(window: Window, { requests }: Allowance, { units, onCounted }: Window['waiting'][number]): void {
  const first = window.next
  window.next += units
  const resetMs = Math.max(0, window.endsAt - performance.now())
  onCounted({ isWithin: first <= requests, remaining: Math.max(0, requests - window.next + 1), resetMs })
}

/** Number of requests to reserve in addition to the waiting ones. */
function countAhead(window: Window, { requests }: Allowance): number {
  const { last, waiting } = window
  if (waiting.length < BURST || !isOpen(window)) return 0
  return Math.floor(Math.min(waiting.length * AHEAD, Math.max(0, requests - last) * MOST_AHEAD))
}

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
    const ahead = countAhead(window, allowance)
    const counted = window.waiting.splice(0)
    const units = counted.reduce((sum, one) => sum + one.units, 0)
    try {
      // Over its limit the library rejects with the state of the window.
      const state = await limiter.consume(clientKey, units + ahead).catch((over: unknown) => {
        if (over instanceof RateLimiterRes) return over
        throw over
      })
      window.endsAt = performance.now() + state.msBeforeNext
      window.last = state.consumedPoints
      window.next = state.consumedPoints - ahead - units + 1
      for (const one of counted) take(window, allowance, one)
    } catch (error) {
      for (const { onCounted } of counted) onCounted({ isWithin: false, remaining: 0, resetMs: 0 }, error)
    }
  }
  const countAll = async (clientKey: string, allowance: Allowance, window: Window): Promise<void> => {
    window.isCounting = true
    while (window.waiting.length > 0) {
      const [first] = window.waiting
      if (first === undefined || !isKnown(window, allowance, first.units))
        await countWaiting(clientKey, allowance, window)
      else for (const one of window.waiting.splice(0, 1)) take(window, allowance, one)
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
      const window = windows.get(windowKey) ?? { next: 1, last: 0, endsAt: 0, waiting: [], isCounting: false }
      const one = { units, onCounted }
      if (!window.isCounting && isKnown(window, allowance, units)) return take(window, allowance, one)
      windows.set(windowKey, window)
      window.waiting.push(one)
      if (!window.isCounting) void countAll(clientKey, allowance, window)
    },
  }
}
