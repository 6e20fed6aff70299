import { createRateLimit, type RateLimit, toBurst } from './rate-limit.ts'
import { sleep } from './retry.ts'
import { createSharedWait, type SharedBy } from './shared-wait.ts'

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

const MINUTE_US = 60_000_000
/** Timers fire a few milliseconds late. The margin keeps a late request from being one too many in the next minute. */
const TIMER_SLACK_US = 250_000

/**
 * The limit of `createRateLimit`, shared by all processes through Redis. Within a process, requests are served in
 * order. Only the tokens of one request at a time are reserved in Redis, and the first request in the queue takes them.
 * Processes therefore alternate, and an aborted request leaves its tokens to the next. While Redis is unavailable, the
 * limit is enforced per process, which is logged once.
 */
export function createSharedRateLimit(
  provider: string,
  perMinute: number,
  sharedBy: SharedBy,
  most?: number,
): RateLimit {
  const burst = toBurst(perMinute, most)
  const perTokenUs = Math.ceil((MINUTE_US + TIMER_SLACK_US) / (perMinute - burst + 1))
  const reserve = createSharedWait(provider, { script: RESERVE, key: 'rate', args: [perTokenUs, burst] }, sharedBy)
  const own = createRateLimit(perMinute, most)
  const line = new Set<{ readonly cost: number; grant(): void }>()
  let isServing = false

  /** Serves the queued requests one by one until the queue is empty. */
  async function serve(): Promise<void> {
    isServing = true
    let held = 0
    for (let [first] = line; first !== undefined; [first] = line) {
      const missing = first.cost - held
      if (missing <= 0) {
        held -= first.cost
        first.grant()
        continue
      }
      const waitMs = await reserve(missing)
      if (waitMs === undefined) await own.take(NEVER, missing)
      else if (waitMs > 0) await sleep(waitMs, NEVER)
      held += missing
    }
    isServing = false
  }

  return {
    take: (signal, cost = 1) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason)
        const giveUp = () => {
          line.delete(waiter)
          reject(signal.reason)
        }
        const waiter = {
          cost,
          grant() {
            line.delete(waiter)
            signal.removeEventListener('abort', giveUp)
            resolve()
          },
        }
        signal.addEventListener('abort', giveUp, { once: true })
        line.add(waiter)
        if (!isServing) void serve()
      }),
  }
}

/**
 * The reservation belongs to the first request in the queue at that time, so no single request's signal ends this wait.
 */
const NEVER = new AbortController().signal
