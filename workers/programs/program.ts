import type { Redis } from 'ioredis'
import type { Registry as Metrics } from 'prom-client'
import { type Config, loadConfig } from '../../shared/config/config.ts'
import { createRedactor, findSecrets } from '../../shared/config/secrets.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'
import { createDatabase, type Database } from '../../shared/store/clickhouse.ts'
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
  readonly registry: Registry
  /** Ends the connections and sends the last traces. */
  close(): Promise<void>
}

/** @throws DataError `config` that names every mistake of the settings or of the registry. */
export async function openProgram(name: 'worker' | 'scheduler'): Promise<Program> {
  const config = loadConfig()
  const redact = createRedactor(findSecrets(config))
  const log = createLog(name, config.logLevel, redact)
  const tracing = await startTracing(`dao-data-${name}`, config, log)
  const registry = loadRegistry()
  const db = createDatabase(config.clickhouse, 'write')
  const redis = createRedis(config.redis.url, log)
  return {
    config,
    log,
    redact,
    metrics: createMetrics(name),
    db,
    redis,
    registry,
    close: async () => {
      await db.close()
      redis.disconnect()
      await tracing.stop()
    },
  }
}
