import type { Redis } from 'ioredis'
import type { Registry as Metrics } from 'prom-client'
import { requireMigrated } from '../../clickhouse/migrations.ts'
import { type Config, loadConfig } from '../../shared/config/config.ts'
import { createRedactor, findSecrets } from '../../shared/config/secrets.ts'
import { type Clock, createClock } from '../../shared/ops/clock.ts'
import { type OpsServer, startOpsServer } from '../../shared/ops/ops-server.ts'
import { untilRedisAnswers, whenClickHouseAnswers } from '../../shared/ops/waiting.ts'
import { endOnStopSignal } from '../../shared/process.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { RegistryPart } from '../../shared/registry/source.ts'
import {
  createDatabase,
  type Database,
  type FollowedRegistry,
  followRegistry,
  readInForce,
} from '../../shared/store/store.ts'
import { createLog, type Logger } from '../../shared/telemetry/log.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { startTracing } from '../../shared/telemetry/tracing.ts'

/** Settings, telemetry and stores shared by worker and scheduler. */
export interface Program {
  readonly config: Config
  readonly log: Logger
  /** Removes the secrets of the settings from a text. */
  readonly redact: (text: string) => string
  readonly metrics: Metrics
  readonly db: Database
  readonly redis: Redis
  readonly clock: Clock
  readonly registry: Registry
  /** See FollowedRegistry. */
  readonly readRegistry: FollowedRegistry['readCurrent']
  /** Serves the liveness and readiness checks; undefined if it is turned off. */
  readonly ops: OpsServer | undefined
  /** Closes the connections and flushes the traces. */
  close(): Promise<void>
}

const OPS = {
  worker: { setting: 'WORKER_OPS_PORT', port: 'workerPort' },
  scheduler: { setting: 'SCHEDULER_OPS_PORT', port: 'schedulerPort' },
} as const

export interface ProgramOptions {
  /**
   * Startup work of the program in ClickHouse. The work is repeated if ClickHouse becomes unavailable before it
   * completes.
   */
  start?(db: Database, config: Config): Promise<void>
  /** The part of the registry that the program needs; default: the whole registry. */
  readonly part?: RegistryPart
}

/**
 * Opens the shared resources. While ClickHouse or Redis is unavailable it logs that it waits, is live but not ready,
 * and exits immediately on a stop signal.
 * @throws DataError `config` that lists every mistake of the settings, `registry` if this program cannot read the
 *   active registry, `storage` if Redis rejects the connection.
 */
export async function openProgram(
  name: 'worker' | 'scheduler',
  { start, part = 'whole' }: ProgramOptions = {},
): Promise<Program> {
  endOnStopSignal()
  const config = loadConfig()
  const redact = createRedactor(findSecrets(config))
  const log = createLog(name, config.logLevel, redact)
  const tracing = await startTracing(`dao-data-${name}`, config, log)
  const metrics = createMetrics(name)
  const { setting, port } = OPS[name]
  const checks = { stores: async () => Promise.reject(new Error('waiting for the stores')) }
  const { host, hosts } = config.ops
  const ops = await startOpsServer({ registry: metrics, checks, host, hosts, port: config.ops[port], setting })
  const db = createDatabase(config.clickhouse, 'write')
  const begin = async () => {
    await requireMigrated(db)
    await start?.(db, config)
    return readInForce(db, { part })
  }
  const [first] = await Promise.all([
    whenClickHouseAnswers(db, config.clickhouse.url, begin, { log }),
    untilRedisAnswers(config.redis, { log }),
  ])
  const redis = createRedis(config.redis.url, log)
  const followed = followRegistry(db, first, { log, part })
  await followed.refresh()
  return {
    config,
    log,
    redact,
    metrics,
    db,
    redis,
    clock: createClock({ db, redis, log }),
    registry: followed.registry,
    readRegistry: followed.readCurrent,
    ops,
    close: async () => {
      followed.stop()
      await ops?.close()
      await db.close()
      redis.disconnect()
      await tracing.stop()
    },
  }
}
