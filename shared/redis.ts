import { Redis } from 'ioredis'
import { DataError, toReason } from './errors.ts'
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

/**
 * Waits for Redis to answer, so that a command ends with a reason instead of waiting for as long as Redis is away. The
 * connection is closed when it does not.
 * @throws DataError `storage` that names the host, never the password.
 */
export async function requireRedis(redis: Redis): Promise<void> {
  try {
    await redis.ping()
  } catch (cause) {
    redis.disconnect()
    const { host, port } = redis.options
    throw new DataError('storage', `REDIS_URL: no Redis answers at ${host}:${port}: ${toReason(cause)}`, { cause })
  }
}
