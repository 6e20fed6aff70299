import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { isRedisCluster, readClusterUrl } from '../config/redis-url.ts'
import { DataError, toReason } from '../errors.ts'
import type { Logger } from '../telemetry/log.ts'
import { createOutageLog } from '../telemetry/outage-log.ts'

type Use = 'commands' | 'blocking' | 'subscriber' | 'reader' | 'counter'

/**
 * What differs by use. `blocking` is for BullMQ workers, whose blocking reads must wait without a retry limit.
 * `commands` fail after a few tries, so that a caller hears of it. Both take a Redis that says nothing for dead, as one does
 * whose machine lost its power or its network: the system would wait for it for a quarter of an hour. A `subscriber` that gets
 * no answer is taken for dead, and subscribes anew by itself on every connection. A `reader` waits a few seconds in each of its
 * reads, is taken for dead likewise, and hears of it at once: it reads again by itself.
 */
const OPTIONS = {
  commands: { maxRetriesPerRequest: 3, socketTimeout: 20_000 },
  // Longer than the 10 seconds for which BullMQ lets Redis wait for a job at most.
  blocking: { maxRetriesPerRequest: null, socketTimeout: 30_000 },
  subscriber: {
    maxRetriesPerRequest: null,
    socketTimeout: 4_000,
    connectTimeout: 4_000,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
  },
  reader: { maxRetriesPerRequest: 0, socketTimeout: 8_000, connectTimeout: 4_000 },
  // A request waits for it: a Redis that hangs is soon away like one that is gone; a busy machine's is not.
  counter: { maxRetriesPerRequest: 0, socketTimeout: 8_000, connectTimeout: 4_000, commandTimeout: 1_000 },
} as const satisfies Record<Use, RedisOptions>

const retryStrategy = (attempt: number) => Math.min(200 * attempt, 5_000)

/**
 * Replies of a node that cannot serve this client now: a former master after a failover (inside a script, Redis 6 and older put
 * the reply into the text of another error), a node that reads its data set from disk, a replica without its master.
 */
const WRONG_NODE = /^(READONLY|LOADING|MASTERDOWN)\b|-READONLY\b/

/** The address may lead to another node by now. The command fails; a new connection takes the next one. */
const reconnectOnError = ({ message }: Error) => WRONG_NODE.test(message)

/** A Redis connection, which comes back by itself whenever it is lost. A cluster answers the same commands. */
export function createRedis(url: string, log: Logger, use: Use = 'commands'): Redis {
  const redis = isRedisCluster(url)
    ? toCluster(url, use)
    : new Redis(url, { ...OPTIONS[use], retryStrategy, reconnectOnError })
  const outage = createOutageLog(log, 'warn')
  redis.on('error', ({ message }) => outage.failed(message, { reason: message, use }, 'redis connection'))
  redis.on('ready', () => outage.works())
  return redis
}

/**
 * A cluster is asked through any of its nodes; the URL's own is the first of those that are tried. What is published
 * reaches every node, so that a subscriber is an ordinary connection to one of them, and to the next when it is lost.
 */
function toCluster(url: string, use: Use): Redis {
  const { nodes, login } = readClusterUrl(url)
  if (use !== 'subscriber')
    return new Cluster([...nodes], {
      redisOptions: { ...OPTIONS[use], ...login, reconnectOnError },
      clusterRetryStrategy: retryStrategy,
      // Nodes stay known by their names, to which their certificates belong; by default they are resolved to addresses first.
      dnsLookup: (host, done) => done(null, host),
    }) as unknown as Redis
  const redis = new Redis({ ...OPTIONS[use], ...login, ...nodes[0], retryStrategy, reconnectOnError })
  let tried = 0
  redis.on('close', () => {
    tried += 1
    // They are read at every attempt to connect.
    Object.assign(redis.options, nodes[tried % nodes.length])
  })
  return redis
}

/** Longer than the tries of a single server's commands take. */
const ANSWER_WITHIN_MS = 10_000

/**
 * Waits for Redis to answer, so that a command ends with a reason instead of waiting for as long as Redis is away. The
 * connection is closed when it does not.
 * @throws DataError `storage` that names the host, never the password.
 */
export async function requireRedis(redis: Redis): Promise<void> {
  const late = new AbortController()
  try {
    await Promise.race([redis.ping(), untilLate(late.signal)])
  } catch (cause) {
    redis.disconnect()
    const where = redis.isCluster ? 'any node of the cluster' : `${redis.options.host}:${redis.options.port}`
    throw new DataError('storage', `REDIS_URL: no Redis answers at ${where}: ${toReason(cause)}`, { cause })
  } finally {
    late.abort()
  }
}

/** Longer than any interval at which readiness is asked for. */
const READY_KEY_SECONDS = 60

/**
 * Checks that Redis takes writes under each of these prefixes, which a replica, a node at its `maxmemory` or one that cannot
 * write to its disk refuses although it answers a PING.
 * @throws what Redis answers, such as `OOM command not allowed when used memory > 'maxmemory'.`
 */
export async function requireWritable(redis: Redis, prefixes: readonly string[]): Promise<void> {
  await Promise.all([...new Set(prefixes)].map((prefix) => redis.set(`${prefix}:ready`, '1', 'EX', READY_KEY_SECONDS)))
}

/** While a cluster cannot be reached, commands wait for it without end. */
function untilLate(answered: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer within ${ANSWER_WITHIN_MS} ms`)), ANSWER_WITHIN_MS)
    answered.addEventListener('abort', () => clearTimeout(timer), { once: true })
  })
}
