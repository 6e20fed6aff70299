import { DataError } from '../../shared/errors.ts'
import type { RateLimit } from './rate-limit.ts'
import { LONGEST_WAIT_MS, sleep } from './retry.ts'
import { createSharedWait, type SharedBy } from './shared-wait.ts'

/** An hour, and a second for requests that take longer to arrive than others. */
const WINDOW_MS = 3_601_000

/**
 * Takes one of the requests of an hour, or answers how long none is left, in milliseconds. KEYS[1] is a list of the times,
 * in milliseconds of Redis' own clock, of the newest requests. ARGV: requests per hour, milliseconds of an hour.
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
 * At most `perHour` requests in any hour, for providers whose quota is by the hour or longer; all of them may go at
 * once. The count is this process's own. `take` waits up to a minute.
 * @throws DataError `provider_exhausted` at once, with `retryAfterMs`, where the wait is longer: a worker that sleeps
 * would hold a job that others could do meanwhile.
 */
export function createHourLimit(provider: string, perHour: number): RateLimit {
  const take = createOwnCount(perHour)
  return toLimit(provider, perHour, async () => take())
}

/** The same limit, held by all processes that share a Redis; while that is away each process keeps it for itself. */
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
