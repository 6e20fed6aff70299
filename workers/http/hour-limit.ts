import { DataError } from '../../shared/errors.ts'
import type { RateLimit } from './rate-limit.ts'
import { LONGEST_WAIT_MS, sleep } from './retry.ts'
import { createSharedWait, type SharedBy } from './shared-wait.ts'

/** An hour, plus a second for requests with a longer delay on the network. */
const WINDOW_MS = 3_601_000

/**
 * Takes one request of the hour, or returns the milliseconds until one is free. KEYS[1] is a list of the times of the
 * newest requests, in milliseconds of the Redis clock. ARGV: requests per hour, milliseconds per hour.
 */
const TAKE = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local oldest = redis.call('LINDEX', KEYS[1], -ARGV[1])
if oldest and oldest + ARGV[2] > now then return oldest + ARGV[2] - now end
redis.call('RPUSH', KEYS[1], string.format('%.0f', now))
redis.call('LTRIM', KEYS[1], -ARGV[1], -1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 0
`

/**
 * Limits requests to `perHour` in any hour, for providers with a quota per hour or longer; there is no limit per
 * shorter time. The count is local to this process. `take` waits up to a minute.
 * @throws DataError `provider_exhausted`, with `retryAfterMs`, if the wait is longer: a sleeping worker would block a
 *   job that other workers could run.
 */
export function createHourLimit(provider: string, perHour: number): RateLimit {
  const take = createOwnCount(perHour)
  return toLimit(provider, perHour, async () => take())
}

/**
 * The same limit, shared by all processes through Redis. While Redis is unavailable, the limit is enforced per process.
 */
export function createSharedHourLimit(provider: string, perHour: number, sharedBy: SharedBy): RateLimit {
  const take = createSharedWait(provider, { script: TAKE, key: 'hour', args: [perHour, WINDOW_MS] }, sharedBy)
  const own = createOwnCount(perHour)
  return toLimit(provider, perHour, async () => (await take()) ?? own())
}

function createOwnCount(perHour: number): () => number {
  let times: number[] = []
  return () => {
    const now = performance.now()
    times = times.filter((at) => at + WINDOW_MS > now)
    const [oldest] = times
    if (oldest !== undefined && times.length >= perHour) return Math.ceil(oldest + WINDOW_MS - now)
    times.push(now)
    return 0
  }
}

function toLimit(provider: string, perHour: number, takeOne: () => Promise<number>): RateLimit {
  return {
    async take(signal, cost = 1) {
      signal.throwIfAborted()
      for (let taken = 0; taken < cost; ) {
        const waitMs = await takeOne()
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
