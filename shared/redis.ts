import { Redis } from 'ioredis'
import type { Logger } from './log.ts'

/**
 * A Redis connection. `blocking` is for BullMQ workers, whose blocking reads must wait without a retry limit; the other
 * connections fail a command after a few tries, so that a caller hears of it.
 */
export function createRedis(url: string, log: Logger, use: 'commands' | 'blocking' | 'subscriber' = 'commands'): Redis {
  const redis = new Redis(url, {
    maxRetriesPerRequest: use === 'commands' ? 3 : null,
    retryStrategy: (attempt) => Math.min(200 * attempt, 5_000),
  })
  redis.on('error', (error) => log.warn({ reason: error.message, use }, 'redis connection'))
  return redis
}
