import { DataError } from '../../shared/errors.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import type { RateLimit } from './rate-limit.ts'
import { createSharedWait, type SharedBy, toSharedKey } from './shared-wait.ts'

/**
 * Takes requests of a UTC day. If too few are left, returns the milliseconds until the next day. KEYS[1] holds the day
 * and the number taken. ARGV: requests per day, milliseconds per day, requests wanted.
 */
const TAKE = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local day = math.floor(now / ARGV[2])
local taken = 0
if redis.call('HGET', KEYS[1], 'day') == tostring(day) then taken = tonumber(redis.call('HGET', KEYS[1], 'taken')) end
local left = (day + 1) * ARGV[2] - now
if taken + ARGV[3] > tonumber(ARGV[1]) then return left end
redis.call('HSET', KEYS[1], 'day', tostring(day), 'taken', taken + ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 0
`

/** Name of the count among a provider's limits. */
const KEY = 'day'

/**
 * Limits requests to `perDay` per UTC day, for plans that reset at midnight; there is no limit per shorter time. Each
 * request counts with its billed units. The count is local to this process. `setting` names the source of the limit in
 * messages.
 * @throws DataError `provider_exhausted`, with the time to midnight, if the limit is reached.
 */
export function createDayLimit(provider: string, perDay: number, setting?: string): RateLimit {
  const take = createOwnCount(perDay)
  return toLimit({ provider, perDay, setting }, async (cost) => take(cost))
}

/**
 * The same limit, shared by all processes through Redis. While Redis is unavailable, the limit is enforced per process.
 */
export function createSharedDayLimit(
  provider: string,
  perDay: number,
  sharedBy: SharedBy,
  setting?: string,
): RateLimit {
  const take = createSharedWait(provider, { script: TAKE, key: KEY, args: [perDay, DAY_MS] }, sharedBy)
  const own = createOwnCount(perDay)
  return toLimit({ provider, perDay, setting }, async (cost) => (await take(cost)) ?? own(cost))
}

/** Returns the billed requests of all processes on the UTC day of `now` (Unix milliseconds). */
export async function readTaken(
  { redis, prefix }: Pick<SharedBy, 'redis' | 'prefix'>,
  provider: string,
  now: number,
): Promise<number> {
  const [day, taken] = await redis.hmget(toSharedKey(prefix, KEY, provider), 'day', 'taken')
  return day === String(Math.floor(now / DAY_MS)) ? Number(taken) : 0
}

function createOwnCount(perDay: number): (cost: number) => number {
  let [day, taken] = [0, 0]
  return (cost) => {
    const now = Date.now()
    const today = Math.floor(now / DAY_MS)
    if (today !== day) [day, taken] = [today, 0]
    if (taken + cost > perDay) return (today + 1) * DAY_MS - now
    taken += cost
    return 0
  }
}

interface Named {
  readonly provider: string
  readonly perDay: number
  readonly setting: string | undefined
}

function toLimit({ provider, perDay, setting }: Named, takeAll: (units: number) => Promise<number>): RateLimit {
  return {
    async take(signal, cost = 1, units = cost) {
      signal.throwIfAborted()
      const waitMs = await takeAll(units)
      if (waitMs === 0) return
      const from = setting === undefined ? '' : ` (${setting})`
      const message = `${provider}: its ${perDay} requests of a day are used up${from}`
      throw new DataError('provider_exhausted', message, { retryAfterMs: waitMs })
    },
  }
}
