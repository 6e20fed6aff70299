import { requireMigrated } from '../../clickhouse/migrations.ts'
import type { Config } from '../../shared/config/config.ts'
import { createRedis, requireRedis } from '../../shared/queue/redis.ts'
import { createDatabase } from '../../shared/store/store.ts'
import { createLog } from '../../shared/telemetry/log.ts'
import type { Stores } from '../backfill/until-done.ts'

/** Runs the work of a collecting command. Fails with a clear message if a store is unavailable. */
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
