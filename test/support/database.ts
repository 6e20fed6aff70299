import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import { migrate } from '../../clickhouse/migrate.ts'
import { type Config, parseConfig } from '../../shared/config/config.ts'
import { createDatabase, type Database } from '../../shared/store/clickhouse.ts'
import { onCluster } from '../../shared/store/topology.ts'
import { TEST_DATABASES } from './own-clickhouse.ts'
import { copySchema } from './schema-copy.ts'
import { silent } from './silent.ts'

/** A configuration that points at the run's stores, with a database and a queue prefix nobody else uses. */
export function createTestConfig(settings: Readonly<Record<string, string>> = {}): Config {
  const stores = inject('stores')
  const unique = randomBytes(6).toString('hex')
  return parseConfig({
    ...stores.settings,
    CLICKHOUSE_DATABASE: `${TEST_DATABASES}${unique}`,
    QUEUE_PREFIX: `test-${unique}`,
    LOG_LEVEL: 'silent',
    ...settings,
  })
}

export interface TestDatabase {
  readonly db: Database
  /** The same server without a database of its own, for making and dropping databases. */
  readonly server: Database
  drop(): Promise<void>
}

/** A migrated database of the test's own; `empty` leaves the schema out. */
export async function createTestDatabase(config: Config, options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const { database, cluster } = config.clickhouse
  const server = createDatabase(config.clickhouse, 'write', { database: 'default' })
  const db = createDatabase(config.clickhouse, 'write')
  if (!options.empty) await createSchema(config, server, db)
  return {
    db,
    server,
    drop: async () => {
      await server.command({ name: 'drop', sql: `DROP DATABASE IF EXISTS ${database}${onCluster(cluster)}` })
      await Promise.all([db.close(), server.close()])
    },
  }
}

/** On the server that all tests share, what migrating made once is copied; any other is migrated. */
async function createSchema({ clickhouse }: Config, server: Database, db: Database): Promise<void> {
  const { settings, template } = inject('stores')
  const isShared = clickhouse.url === settings.CLICKHOUSE_URL && clickhouse.cluster === undefined
  await (isShared ? copySchema(server, db, template) : migrate(server, db, clickhouse.database, silent))
}
