import type { Redis } from 'ioredis'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import type { Allowance } from '../../shared/keys/allowance.ts'
import { requireWritable } from '../../shared/queue/redis.ts'

/** State of a window after a request was counted. */
export interface Standing {
  readonly isWithin: boolean
  /** Remaining requests in the window. */
  readonly remaining: number
  /** Milliseconds until the next window begins. */
  readonly resetMs: number
}

type OnCounted = (standing: Standing, error?: unknown) => void

export interface Counting {
  /** Counts a request of the client key `who`, and reports the state of its window. */
  count(who: string, allowance: Allowance, onCounted: OnCounted): void
  /** Whether all processes count together, which means that Redis accepts writes now. */
  isShared(): Promise<boolean>
}

/**
 * The state of a client's window in this process. Requests that arrive while a Redis command is running are counted
 * together.
 */
interface Line {
  /** Key of the window: a changed allowance begins another window. */
  readonly place: string
  readonly limiter: RateLimiterRedis | RateLimiterMemory
  readonly allowance: Allowance
  readonly who: string
  waiting: OnCounted[]
  isAsking: boolean
  /** Reserved requests that have not arrived yet: the `next`-th to the `last`-th of the window. */
  next: number
  last: number
  /** End of the window, in milliseconds of this process's monotonic clock. */
  endsAt: number
  forgetting?: NodeJS.Timeout | undefined
}

/** How long requests are batched during a burst. A single request does not wait. */
const GATHER_MS = 1

/**
 * At least this number of requests in one command is a burst. `AHEAD` further requests are then reserved for each of
 * them.
 */
const CROWD = 4
const AHEAD = 16

/**
 * Each process reserves at most 1/64 of the remaining quota, and nothing near its end, because no other process can use
 * the reserved part.
 */
const MOST_AHEAD = 1 / 64

/** Maximum number of remembered exhausted windows, which need no further Redis commands. */
const MOST_FULL = 10_000

const isOpen = ({ endsAt }: Line): boolean => performance.now() < endsAt

const hasAhead = (line: Line): boolean => line.next <= line.last && isOpen(line)

function report(onCounted: OnCounted, { requests }: Allowance, own: number, resetMs: number): void {
  onCounted({ isWithin: own <= requests, remaining: Math.max(0, requests - own), resetMs })
}

/** Answers requests from the reserved part; returns how many were answered. */
function takeAhead(line: Line, waiting: readonly OnCounted[]): number {
  const resetMs = line.endsAt - performance.now()
  const count = resetMs > 0 ? Math.max(0, Math.min(waiting.length, line.last - line.next + 1)) : 0
  for (const onCounted of waiting.slice(0, count)) {
    report(onCounted, line.allowance, line.next, resetMs)
    line.next += 1
  }
  return count
}

/**
 * Number of requests to reserve in addition to the waiting ones; 0 without a burst, or if the window has ended or was
 * never read.
 */
function toAhead(line: Line): number {
  if (line.waiting.length < CROWD || !isOpen(line)) return 0
  const remaining = Math.max(0, line.allowance.requests - line.last)
  return Math.floor(Math.min(line.waiting.length * AHEAD, remaining * MOST_AHEAD))
}

/**
 * Counts requests in windows that begin with a client's first request: over all processes through Redis, or per process
 * while Redis is unavailable. One command counts all requests that arrived during the previous one; in a burst it also
 * reserves further requests.
 */
export function createCounting(redis: Redis | undefined, prefix: string): Counting {
  const limiters = new Map<string, RateLimiterRedis | RateLimiterMemory>()
  const lines = new Map<string, Line>()
  const full = new Map<string, number>()
  const limiterOf = ({ requests: points, seconds: duration }: Allowance) => {
    const name = `${points}/${duration}`
    const settings = { points, duration, keyPrefix: `${prefix}:limit:${name}` }
    const existing = limiters.get(name)
    if (existing !== undefined) return existing
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
  /** Counts the waiting requests and reports the results. */
  const countWaiting = async (line: Line): Promise<void> => {
    const { waiting, who, place, allowance } = line
    const taken = waiting.length + toAhead(line)
    line.waiting = []
    try {
      const standing = await line.limiter.consume(who, taken).catch((over: unknown) => {
        if (over instanceof RateLimiterRes) return over
        throw over
      })
      const { consumedPoints, msBeforeNext } = standing
      remember(place, allowance, standing)
      const first = consumedPoints - taken + 1
      for (const [index, onCounted] of waiting.entries()) report(onCounted, allowance, first + index, msBeforeNext)
      line.next = first + waiting.length
      line.last = Math.min(consumedPoints, allowance.requests)
      line.endsAt = performance.now() + msBeforeNext
    } catch (error) {
      for (const onCounted of waiting) onCounted({ isWithin: false, remaining: 0, resetMs: 0 }, error)
    }
  }
  const forgetAtEnd = (line: Line): void => {
    line.forgetting ??= setTimeout(() => {
      line.forgetting = undefined
      if (!line.isAsking) settle(line)
    }, line.endsAt - performance.now()).unref()
  }
  /** A window must be remembered only while it has reserved requests. */
  const settle = (line: Line): void => {
    if (hasAhead(line)) forgetAtEnd(line)
    else lines.delete(line.place)
  }
  const countBatches = async (line: Line): Promise<void> => {
    line.isAsking = true
    await countWaiting(line)
    line.waiting = line.waiting.slice(takeAhead(line, line.waiting))
    // A Redis command costs more than an answer from the cache: in a burst many requests share one.
    if (line.waiting.length > 0) return void setTimeout(countBatches, GATHER_MS, line)
    line.isAsking = false
    settle(line)
  }
  return {
    isShared: async () => {
      if (redis?.status !== 'ready') return false
      return requireWritable(redis, [prefix]).then(
        () => true,
        () => false,
      )
    },
    count: (who, allowance, onCounted) => {
      const place = `${who} ${allowance.requests}/${allowance.seconds}`
      const line = lines.get(place)
      if (line !== undefined && !line.isAsking && takeAhead(line, [onCounted]) > 0) return
      const until = full.get(place)
      if (until !== undefined) {
        const resetMs = until - performance.now()
        if (resetMs > 0) return onCounted({ isWithin: false, remaining: 0, resetMs })
      }
      if (line === undefined) {
        const window = { next: 1, last: 0, endsAt: 0 }
        const first = {
          limiter: limiterOf(allowance),
          allowance,
          who,
          place,
          waiting: [onCounted],
          isAsking: true,
          ...window,
        }
        lines.set(place, first)
        return void countBatches(first)
      }
      line.waiting.push(onCounted)
      if (line.isAsking) return
      line.isAsking = true
      setTimeout(countBatches, GATHER_MS, line)
    },
  }
}
