import { Redis, type RedisOptions } from 'ioredis'
import { DataError, toReason } from './errors.ts'
import type { Logger } from './log.ts'

type Use = 'commands' | 'blocking' | 'subscriber'

/**
 * What differs by use. `blocking` is for BullMQ workers, whose blocking reads must wait without a retry limit. `commands`
 * fail after a few tries, so that a caller hears of it. A `subscriber` that gets no answer is taken for dead, and
 * subscribes anew by itself on every connection.
 */
const OPTIONS = {
  commands: { maxRetriesPerRequest: 3 },
  blocking: { maxRetriesPerRequest: null },
  subscriber: {
    maxRetriesPerRequest: null,
    socketTimeout: 4_000,
    connectTimeout: 4_000,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
  },
} as const satisfies Record<Use, RedisOptions>

/** A Redis connection, which comes back by itself whenever it is lost. */
export function createRedis(url: string, log: Logger, use: Use = 'commands'): Redis {
  const redis = new Redis(url, { ...OPTIONS[use], retryStrategy: (attempt: number) => Math.min(200 * attempt, 5_000) })
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
