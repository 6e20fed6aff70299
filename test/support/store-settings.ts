import type { Config } from '../../shared/config/config.ts'

/** The settings that connect a child process to the stores of a test's configuration. */
export function toStoreSettings({ clickhouse, redis }: Config): Record<string, string> {
  return {
    CLICKHOUSE_URL: clickhouse.url,
    CLICKHOUSE_DATABASE: clickhouse.database,
    CLICKHOUSE_USER: clickhouse.user,
    CLICKHOUSE_PASSWORD: clickhouse.password,
    CLICKHOUSE_READ_USER: clickhouse.readUser,
    CLICKHOUSE_READ_PASSWORD: clickhouse.readPassword,
    REDIS_URL: redis.url,
    QUEUE_PREFIX: redis.prefix,
  }
}
