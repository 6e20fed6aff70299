import type { Redis } from 'ioredis'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes, RLWrapperTimeouts } from 'rate-limiter-flexible'
import { DataError, toReason } from '../../shared/errors.ts'
import { DAY_MS, HOUR_MS } from '../../shared/intervals.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { HttpSettings } from './types.ts'

/** Grants permission to send requests in the order of the calls. */
export interface RateLimit {
  /**
   * Resolves when a request may be sent. `cost` is what it counts in rate limits (default 1), `units` what it counts in
   * a daily plan (default `cost`). Rejects with the signal's reason if it is aborted first.
   */
  take(signal: AbortSignal, cost?: number, units?: number): Promise<void>
}

/** The whole limit of a provider, and the limit of its history requests. */
export interface ProviderLimits {
  readonly total: RateLimit
  readonly history: RateLimit
}

/**
 * The Redis through which all processes count together; its keys begin with `prefix`. While Redis is unavailable, each
 * process enforces the limits for itself, which is logged once per limit.
 */
export interface SharedBy {
  readonly redis: Redis
  readonly prefix: string
  readonly log: Logger
}

/** A longer wait is left to the queue: a sleeping worker would block a job that other workers could run. */
export const LONGEST_WAIT_MS = 60_000

const MINUTE_MS = 60_000
/** Timers fire a few milliseconds late. The margin keeps a late request from being one too many in the next minute. */
const TIMER_SLACK_MS = 250
/** An hour, plus a second for requests with a longer delay on the network. */
const HOUR_WINDOW_MS = HOUR_MS + 1_000
const REDIS_TIMEOUT_MS = 2_000

interface Limited extends Pick<HttpSettings, 'provider' | 'requestsPerMinute' | 'burst' | 'daySetting'> {
  readonly requestsPerHour?: number | undefined
  readonly requestsPerDay?: number | undefined
}

/** Creates the limits of a provider. `historyShare` is greater than 0 and at most 1. */
export function createProviderLimits(
  settings: HttpSettings,
  { historyShare, sharedBy }: { readonly historyShare: number; readonly sharedBy?: SharedBy | undefined },
): ProviderLimits {
  const total = createLimits(settings, sharedBy)
  return { total, history: createHistoryLimit(createLimits(toHistoryShare(settings, historyShare), sharedBy), total) }
}

/** Returns the part of a provider's limits that history may use. */
export function toHistoryShare(settings: HttpSettings, historyShare: number): Limited {
  const { provider, requestsPerMinute, requestsPerHour, requestsPerDay, historyRequestsPerDay, ...rest } = settings
  const perMinute = requestsPerMinute * historyShare
  const toShare = (count: number) => Math.max(1, Math.floor(count * historyShare))
  return {
    ...rest,
    provider: `${provider} (history)`,
    // Less than one request per minute becomes one request in several minutes.
    requestsPerMinute: perMinute < 1 ? perMinute : Math.floor(perMinute),
    requestsPerHour: requestsPerHour && toShare(requestsPerHour),
    requestsPerDay: requestsPerDay && Math.min(toShare(requestsPerDay), historyRequestsPerDay ?? requestsPerDay),
  }
}

/**
 * Combines the limits of a provider in sequence. The hourly and daily limits come last, so that they do not count a
 * request that was aborted while it waited for the rate limit. A request that they refuse has used only a turn of the
 * rate limit.
 */
function createLimits(limited: Limited, sharedBy: SharedBy | undefined): RateLimit {
  const { provider, requestsPerMinute, burst, requestsPerHour, requestsPerDay, daySetting } = limited
  const limits = [createRateLimit(provider, requestsPerMinute, { burst, sharedBy })]
  if (requestsPerHour !== undefined) limits.push(createHourLimit(provider, requestsPerHour, sharedBy))
  if (requestsPerDay !== undefined)
    limits.push(createDayLimit(provider, requestsPerDay, { setting: daySetting, sharedBy }))
  return {
    take: async (signal, cost, units) => {
      for (const limit of limits) await limit.take(signal, cost, units)
    },
  }
}

/**
 * Reserves the next tokens of a token bucket and returns the wait for them in milliseconds. KEYS[1] holds the time at
 * which the bucket would be full again, in microseconds of the Redis clock. ARGV: microseconds per token, bucket size,
 * tokens wanted.
 */
const RESERVE = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local per_token = tonumber(ARGV[1])
local full_at = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
local until_full = full_at + ARGV[3] * per_token
redis.call('SET', KEYS[1], string.format('%.0f', until_full), 'PX', math.ceil((until_full - now) / 1000) + 1000)
return math.max(0, math.ceil((full_at - (ARGV[2] - math.min(ARGV[2], ARGV[3])) * per_token - now) / 1000))
`

/** The same within this process. */
function createOwnReserve(perTokenMs: number, burst: number): (tokens: number) => number {
  let fullAt = 0
  return (tokens) => {
    const now = performance.now()
    const from = Math.max(fullAt, now)
    fullAt = from + tokens * perTokenMs
    return Math.max(0, Math.ceil(from - (burst - Math.min(burst, tokens)) * perTokenMs - now))
  }
}

/**
 * Creates a token bucket that allows at most `perMinute` requests in any minute. The burst is a fifth of them, or
 * `burst`; the refill is slower by the same amount. A request that costs more than the burst waits until enough tokens
 * are available, and later requests wait for the remaining cost.
 * Within a process, requests are served in order. Only the tokens of one request at a time are reserved, and the first
 * request in the queue takes them. Processes therefore alternate, and an aborted request leaves its tokens to the next.
 */
export function createRateLimit(
  provider: string,
  perMinute: number,
  { burst: most, sharedBy }: { readonly burst?: number | undefined; readonly sharedBy?: SharedBy | undefined } = {},
): RateLimit {
  const burst = Math.max(1, Math.min(most ?? Number.POSITIVE_INFINITY, Math.floor(perMinute / 5)))
  const tokensPerMinute = perMinute - burst + 1
  // Whole milliseconds, as timers have: a request granted late by a fraction could be one too many in its minute.
  const own = createOwnReserve(Math.ceil(MINUTE_MS / tokensPerMinute), burst)
  const perTokenUs = Math.ceil(((MINUTE_MS + TIMER_SLACK_MS) * 1000) / tokensPerMinute)
  const reserve = createCounter(provider, { key: 'rate', script: RESERVE, args: [perTokenUs, burst], own }, sharedBy)
  const queue = new Set<{ readonly cost: number; grant(): void }>()
  let isServing = false

  /** Serves the queued requests one by one until the queue is empty. */
  async function serve(): Promise<void> {
    isServing = true
    let held = 0
    for (let [first] = queue; first !== undefined; [first] = queue) {
      const missing = first.cost - held
      if (missing > 0) {
        const waitMs = await reserve(missing)
        // No single request's signal ends this wait: the tokens go to whichever request is first after it.
        if (waitMs > 0) await sleep(waitMs)
        held += missing
        continue
      }
      held -= first.cost
      queue.delete(first)
      first.grant()
    }
    isServing = false
  }

  return {
    take(signal, cost = 1) {
      const waiter = { cost, grant: () => {} }
      const turn = new Promise<void>((resolve) => {
        waiter.grant = resolve
      })
      if (!signal.aborted) queue.add(waiter)
      if (!isServing) void serve()
      return untilAborted(turn, signal, () => queue.delete(waiter))
    },
  }
}

/** Returns the same promise, but rejects with the signal's reason as soon as it is aborted. */
function untilAborted<T>(turn: Promise<T>, signal: AbortSignal, onAbort = () => {}): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      onAbort()
      reject(signal.reason)
    }
    if (signal.aborted) return abort()
    signal.addEventListener('abort', abort, { once: true })
    turn.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

/** Resolves after `ms`; rejects with the signal's reason when it is aborted first. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const time = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  return signal === undefined ? time : untilAborted(time, signal, () => clearTimeout(timer))
}

/**
 * Takes one request of the hour, or returns the milliseconds until one is free. KEYS[1] is a list of the times of the
 * newest requests, in milliseconds of the Redis clock. ARGV: requests per hour, milliseconds per hour.
 */
const TAKE_OF_HOUR = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local oldest = redis.call('LINDEX', KEYS[1], -ARGV[1])
if oldest and oldest + ARGV[2] > now then return oldest + ARGV[2] - now end
redis.call('RPUSH', KEYS[1], string.format('%.0f', now))
redis.call('LTRIM', KEYS[1], -ARGV[1], -1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 0
`

function createOwnHour(perHour: number): () => number {
  let times: number[] = []
  return () => {
    const now = performance.now()
    times = times.filter((at) => at + HOUR_WINDOW_MS > now)
    const [oldest] = times
    if (oldest !== undefined && times.length >= perHour) return Math.ceil(oldest + HOUR_WINDOW_MS - now)
    times.push(now)
    return 0
  }
}

/**
 * Limits requests to `perHour` in any hour, for providers with a quota per hour or longer; there is no limit per
 * shorter time. `take` waits up to a minute.
 * @throws DataError `provider_exhausted`, with `retryAfterMs`, if the wait is longer.
 */
export function createHourLimit(provider: string, perHour: number, sharedBy?: SharedBy): RateLimit {
  const limit = { key: 'hour', script: TAKE_OF_HOUR, args: [perHour, HOUR_WINDOW_MS], own: createOwnHour(perHour) }
  const takeOne = createCounter(provider, limit, sharedBy)
  return {
    async take(signal, cost = 1) {
      signal.throwIfAborted()
      for (let taken = 0; taken < cost; ) {
        const waitMs = await takeOne(1)
        if (waitMs > LONGEST_WAIT_MS) {
          const message = `${provider}: its ${perHour} requests of an hour are used up`
          throw new DataError('provider_exhausted', message, { retryAfterMs: waitMs })
        }
        if (waitMs > 0) await sleep(waitMs, signal)
        else taken += 1
      }
    },
  }
}

const DAY_SECONDS = DAY_MS / 1000
const toDay = (now: number) => Math.floor(now / DAY_MS)

/** The key of a provider's day; the braces keep all days of a provider on one node of a Redis cluster. */
export const toDayKey = (provider: string, now: number) => `{${provider}}:${toDay(now)}`

/** Counts requests in Redis by day; the day is part of the key. */
export const createDayCounter = (redis: Redis, prefix: string, perDay: number) =>
  new RateLimiterRedis({
    storeClient: redis,
    rejectIfRedisNotReady: true,
    points: perDay,
    duration: DAY_SECONDS,
    keyPrefix: `${prefix}:day`,
  })

/**
 * Limits requests to `perDay` per UTC day, for plans that reset at midnight; there is no limit per shorter time. Each
 * request counts with its billed units. `setting` names the source of the limit in messages.
 * @throws DataError `provider_exhausted`, with the time to midnight, if the limit is reached.
 */
export function createDayLimit(
  provider: string,
  perDay: number,
  { setting, sharedBy }: { readonly setting?: string | undefined; readonly sharedBy?: SharedBy | undefined } = {},
): RateLimit {
  const own = new RateLimiterMemory({ points: perDay, duration: DAY_SECONDS })
  const counter =
    sharedBy === undefined
      ? own
      : new RLWrapperTimeouts({
          limiter: createDayCounter(sharedBy.redis, sharedBy.prefix, perDay),
          timeoutMs: REDIS_TIMEOUT_MS,
          insuranceLimiter: own,
        })
  return {
    async take(signal, cost = 1, units = cost) {
      signal.throwIfAborted()
      const now = Date.now()
      const key = toDayKey(provider, now)
      try {
        await counter.consume(key, units)
      } catch (over) {
        if (!(over instanceof RateLimiterRes)) throw over
        // A refused request is not billed, and a smaller one may still fit.
        await counter.reward(key, units)
        const from = setting === undefined ? '' : ` (${setting})`
        const message = `${provider}: its ${perDay} requests of a day are used up${from}`
        throw new DataError('provider_exhausted', message, { retryAfterMs: (toDay(now) + 1) * DAY_MS - now })
      }
    },
  }
}

/**
 * Rate limit of history requests: each takes from the provider's whole limit and from the history share. At most one
 * history request per process waits in the queue of the whole limit. A live request therefore waits for at most one
 * history request, regardless of the backlog.
 */
export function createHistoryLimit(share: RateLimit, total: RateLimit): RateLimit {
  let last: Promise<void> = Promise.resolve()
  const takeBoth: RateLimit['take'] = async (signal, cost, units) => {
    // A request aborted while waiting takes nothing.
    signal.throwIfAborted()
    // The share is taken first: if it is exhausted, nothing is taken from the whole limit.
    await share.take(signal, cost, units)
    await total.take(signal, cost, units)
  }
  return {
    take(signal, cost, units) {
      const turn = last.then(() => takeBoth(signal, cost, units))
      // The next request gets its turn even if this one fails; the failure is reported to its own caller.
      last = turn.catch(() => undefined)
      return untilAborted(turn, signal)
    },
  }
}

/** A limit, counted in Redis or in this process. Both counters take requests and return the wait in milliseconds. */
interface Counter {
  readonly key: string
  /** Lua script of the counter that Redis shares. Its arguments are `args` and the number of requests. */
  readonly script: string
  readonly args: readonly number[]
  /** The same counter within this process. */
  own(requests: number): number
}

/** Counts in the shared Redis, and within this process while Redis is unavailable. */
function createCounter(provider: string, { key, script, args, own }: Counter, sharedBy: SharedBy | undefined) {
  let isAlone = false
  return async (requests: number): Promise<number> => {
    // On a broken connection the command would wait until it is restored.
    if (sharedBy === undefined || (isAlone && sharedBy.redis.status !== 'ready')) return own(requests)
    const { redis, prefix, log } = sharedBy
    try {
      const reply = redis.eval(script, 1, `${prefix}:${key}:{${provider}}`, ...args, requests)
      const waitMs = Number(await untilAborted(reply, AbortSignal.timeout(REDIS_TIMEOUT_MS)))
      if (isAlone) log.info({ provider }, 'rate limit is shared between processes again')
      isAlone = false
      return waitMs
    } catch (error) {
      const reason = toReason(error)
      if (!isAlone)
        log.warn({ provider, reason }, 'Redis is unavailable: each process applies the rate limit on its own')
      isAlone = true
      return own(requests)
    }
  }
}
