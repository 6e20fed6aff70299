import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { isRedisCluster, readClusterUrl } from '../config/redis-url.ts'
import { DataError, toReason } from '../errors.ts'
import type { Logger } from '../telemetry/log.ts'
import { createOutageLog } from '../telemetry/outage-log.ts'

type Use = 'commands' | 'blocking' | 'subscriber' | 'reader' | 'counter'

/**
 * Options by use.
 * - `commands` fail after a few attempts, so that the caller gets an error.
 * - `blocking` is for BullMQ workers, because their blocking reads must wait without a retry limit.
 * - `subscriber` resubscribes itself on every new connection.
 * - `reader` blocks for a few seconds in each read and gets an error immediately; it retries the read itself. All have
 *   a socket timeout. Without it the system would wait a quarter of an hour for a host without power or network.
 */
const OPTIONS = {
  commands: { maxRetriesPerRequest: 3, socketTimeout: 20_000 },
  // More than 10 seconds, the longest blocking read of BullMQ.
  blocking: { maxRetriesPerRequest: null, socketTimeout: 30_000 },
  subscriber: {
    maxRetriesPerRequest: null,
    socketTimeout: 4_000,
    connectTimeout: 4_000,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
  },
  reader: { maxRetriesPerRequest: 0, socketTimeout: 8_000, connectTimeout: 4_000 },
  // HTTP requests wait for these commands. The command timeout treats a hanging Redis soon like an unreachable one; the
  // socket timeout tolerates a busy machine.
  counter: { maxRetriesPerRequest: 0, socketTimeout: 8_000, connectTimeout: 4_000, commandTimeout: 1_000 },
} as const satisfies Record<Use, RedisOptions>

const retryStrategy = (attempt: number) => Math.min(200 * attempt, 5_000)

/**
 * Replies of a node that cannot serve this client now: a former master after a failover (inside a script, Redis 6 and
 * older put the reply into the text of another error), a node that loads its data set from disk, a replica without its
 * master.
 */
const WRONG_NODE = /^(READONLY|LOADING|MASTERDOWN)\b|-READONLY\b/

/** The address may resolve to another node by now. The command fails; the new connection serves the next command. */
const reconnectOnError = ({ message }: Error) => WRONG_NODE.test(message)

/** A Redis connection that reconnects after each loss. A cluster accepts the same commands. */
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
 * A cluster is reachable through any of its nodes; the URL's host is tried first. Published messages reach every node,
 * so a subscriber uses an ordinary connection to one node, and to the next node after a loss.
 */
function toCluster(url: string, use: Use): Redis {
  const { nodes, login } = readClusterUrl(url)
  if (use !== 'subscriber')
    return new Cluster([...nodes], {
      redisOptions: { ...OPTIONS[use], ...login, reconnectOnError },
      clusterRetryStrategy: retryStrategy,
      // Certificates belong to the nodes' names. By default ioredis would resolve them to addresses first.
      dnsLookup: (host, done) => done(null, host),
    }) as unknown as Redis
  const redis = new Redis({ ...OPTIONS[use], ...login, ...nodes[0], retryStrategy, reconnectOnError })
  let tried = 0
  redis.on('close', () => {
    tried += 1
    // ioredis reads these options at every connection attempt.
    Object.assign(redis.options, nodes[tried % nodes.length])
  })
  return redis
}

/** More than the retries of a single server's commands take. */
const ANSWER_WITHIN_MS = 10_000

/**
 * Waits for a response of Redis, so that a command fails with a reason instead of waiting for the end of an outage.
 * Closes the connection on failure.
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

/** Longer than any interval between readiness checks. */
const READY_KEY_SECONDS = 60

/**
 * Checks that Redis accepts writes under each of these prefixes. A replica, a node at its `maxmemory` and a node that
 * cannot write to its disk reply to PING but refuse writes.
 * @throws the error of Redis, such as `OOM command not allowed when used memory > 'maxmemory'.`
 */
export async function requireWritable(redis: Redis, prefixes: readonly string[]): Promise<void> {
  await Promise.all([...new Set(prefixes)].map((prefix) => redis.set(`${prefix}:ready`, '1', 'EX', READY_KEY_SECONDS)))
}

/** While a cluster is unreachable, its commands wait without limit. */
function untilLate(answered: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer within ${ANSWER_WITHIN_MS} ms`)), ANSWER_WITHIN_MS)
    answered.addEventListener('abort', () => clearTimeout(timer), { once: true })
  })
}
