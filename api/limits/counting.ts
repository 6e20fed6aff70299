import type { Redis } from 'ioredis'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import type { Allowance } from '../../shared/keys/allowance.ts'

/** How a window stands after a request was counted. */
export interface Standing {
  readonly isWithin: boolean
  /** Requests that are left in the window. */
  readonly remaining: number
  /** When the next window begins, in milliseconds from now. */
  readonly resetMs: number
}

type Told = (standing: Standing, error?: unknown) => void

export interface Counting {
  /** Counts a request of somebody, and tells how the window stands. */
  count(who: string, allowance: Allowance, told: Told): void
}

/** Those who ask while an answer of Redis is under way are counted together, with the next one. */
interface Waiting {
  /** Whose window it is: an allowance that is changed begins another. */
  readonly place: string
  readonly limiter: RateLimiterRedis | RateLimiterMemory
  readonly allowance: Allowance
  readonly who: string
  told: Told[]
}

/** How long a crowd's requests are gathered. Whoever comes alone does not wait. */
const GATHER_MS = 1

/** How many windows that are used up are remembered, so that nobody asks Redis about them. */
const MOST_FULL = 10_000

/** Tells each of those who were counted together where it stands, in the order in which they came. */
function tellEach(told: readonly Told[], { requests }: Allowance, consumed: number, resetMs: number): void {
  for (const [index, tell] of told.entries()) {
    const own = consumed - told.length + index + 1
    tell({ isWithin: own <= requests, remaining: Math.max(0, requests - own), resetMs })
  }
}

/**
 * Counts requests in windows that begin with somebody's first request, over all processes through Redis, and in this
 * process alone while Redis is away. One statement counts everybody who came while the one before was under way.
 */
export function createCounting(redis: Redis | undefined, prefix: string): Counting {
  const limiters = new Map<string, RateLimiterRedis | RateLimiterMemory>()
  const waiting = new Map<string, Waiting>()
  const full = new Map<string, number>()
  const limiterOf = ({ requests: points, seconds: duration }: Allowance) => {
    const name = `${points}/${duration}`
    const settings = { points, duration, keyPrefix: `${prefix}:limit:${name}` }
    const known = limiters.get(name)
    if (known !== undefined) return known
    const alone = new RateLimiterMemory(settings)
    const shared = { ...settings, storeClient: redis, rejectIfRedisNotReady: true, insuranceLimiter: alone }
    const limiter = redis === undefined ? alone : new RateLimiterRedis(shared)
    limiters.set(name, limiter)
    return limiter
  }
  const remember = (place: string, { requests }: Allowance, { consumedPoints, msBeforeNext }: RateLimiterRes) => {
    if (consumedPoints < requests || full.size >= MOST_FULL) return
    full.set(place, performance.now() + msBeforeNext)
    setTimeout(() => full.delete(place), msBeforeNext).unref()
  }
  const flush = async (line: Waiting): Promise<void> => {
    const { told, who, place, allowance } = line
    line.told = []
    try {
      const standing = await line.limiter.consume(who, told.length).catch((over: unknown) => {
        if (over instanceof RateLimiterRes) return over
        throw over
      })
      remember(place, allowance, standing)
      tellEach(told, allowance, standing.consumedPoints, standing.msBeforeNext)
    } catch (error) {
      for (const tell of told) tell({ isWithin: false, remaining: 0, resetMs: 0 }, error)
    }
    if (line.told.length === 0) return void waiting.delete(place)
    // A statement costs more than answering from kept bytes: in a crowd many requests share one.
    setTimeout(flush, GATHER_MS, line)
  }
  return {
    count: (who, allowance, told) => {
      const place = `${who} ${allowance.requests}/${allowance.seconds}`
      const until = full.get(place)
      if (until !== undefined) {
        const resetMs = until - performance.now()
        if (resetMs > 0) return told({ isWithin: false, remaining: 0, resetMs })
      }
      const line = waiting.get(place)
      if (line !== undefined) return void line.told.push(told)
      const first = { limiter: limiterOf(allowance), allowance, who, place, told: [told] }
      waiting.set(place, first)
      void flush(first)
    },
  }
}
