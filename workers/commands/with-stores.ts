import { requireMigrated } from '../../clickhouse/migrate.ts'
import type { Config } from '../../shared/config/config.ts'
import { createRedis, requireRedis } from '../../shared/queue/redis.ts'
import { createDatabase } from '../../shared/store/clickhouse.ts'
import { createLog } from '../../shared/telemetry/log.ts'
import type { Stores } from '../backfill/until-done.ts'

/** Does the work of a command that collects. It tells itself when a store is away. */
export async function withStores<T>(config: Config, work: (stores: Stores) => Promise<T>): Promise<T> {
  const redis = createRedis(config.redis.url, createLog('command', 'error'))
  await requireRedis(redis)
  const db = createDatabase(config.clickhouse, 'write')
  try {
    await requireMigrated(db)
    return await work({ db, redis, prefix: config.redis.prefix, now: Date.now })
  } finally {
    redis.disconnect()
    await db.close()
  }
}
