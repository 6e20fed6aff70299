import type { Redis } from 'ioredis'
import type { Registry as Metrics } from 'prom-client'
import { requireMigrated } from '../../clickhouse/migrate.ts'
import { type Config, loadConfig } from '../../shared/config/config.ts'
import { createRedactor, findSecrets } from '../../shared/config/secrets.ts'
import { type Clock, createClock } from '../../shared/ops/clock.ts'
import { type OpsServer, startOpsServer } from '../../shared/ops/ops-server.ts'
import { untilRedisAnswers, whenClickHouseAnswers } from '../../shared/ops/waiting.ts'
import { endOnStopSignal } from '../../shared/process.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { RegistryPart } from '../../shared/registry/source.ts'
import { createDatabase, type Database } from '../../shared/store/clickhouse.ts'
import { type FollowedRegistry, followRegistry, readInForce } from '../../shared/store/followed-registry.ts'
import { createLog, type Logger } from '../../shared/telemetry/log.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { startTracing } from '../../shared/telemetry/tracing.ts'

/** What worker and scheduler are made of alike: settings, telemetry and stores. */
export interface Program {
  readonly config: Config
  readonly log: Logger
  /** Takes the secrets of the settings out of a text. */
  readonly redact: (text: string) => string
  readonly metrics: Metrics
  readonly db: Database
  readonly redis: Redis
  readonly clock: Clock
  readonly registry: Registry
  /** As of a followed registry. */
  readonly readRegistry: FollowedRegistry['readCurrent']
  /** It tells of liveness, and of readiness what it is given; undefined where it is turned off. */
  readonly ops: OpsServer | undefined
  /** Ends the connections and sends the last traces. */
  close(): Promise<void>
}

const OPS = {
  worker: { setting: 'WORKER_OPS_PORT', port: 'workerPort' },
  scheduler: { setting: 'SCHEDULER_OPS_PORT', port: 'schedulerPort' },
} as const

export interface ProgramOptions {
  /**
   * What the program itself has to do over ClickHouse before it begins; where ClickHouse leaves in the middle of it, it is
   * done anew.
   */
  start?(db: Database, config: Config): Promise<void>
  /** How much of the registry it needs; all of it unless given. */
  readonly part?: RegistryPart
}

/**
 * Opens what the program is made of. While ClickHouse or Redis is away it waits: it says so, is alive and not ready, and ends
 * at once when it is told to stop.
 * @throws DataError `config` that names every mistake of the settings, `registry` where the one in force makes no sense to this
 * program, `storage` when Redis refuses.
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
