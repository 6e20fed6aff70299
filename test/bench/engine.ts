import { migrate } from '../../clickhouse/migrations.ts'
import { storeRegistry } from '../../clickhouse/registry.ts'
import { type Config, parseConfig } from '../../shared/config/config.ts'
import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'
import { createDatabase, type Database } from '../../shared/store/store.ts'
import { type OwnClickHouse, startOwnClickHouse, TEST_DATABASES } from '../support/own-clickhouse.ts'
import { silent } from '../support/silent.ts'

/**
 * A migrated database on ClickHouse's own server with the shipped registry, opened for writing and as the API's reader.
 */
export interface BenchDatabase {
  readonly config: Config
  readonly registry: Registry
  readonly db: Database
  readonly reader: Database
}

/** Runs `work` with a server in a separate process, over a temporary folder that is removed afterwards. */
export async function withEngine<T>(work: (engine: OwnClickHouse) => Promise<T>): Promise<T> {
  const engine = await startOwnClickHouse()
  try {
    return await work(engine)
  } finally {
    await engine.stop()
  }
}

/** Creates a database, runs `work` with it and drops it. */
export async function withDatabase<T>(
  engine: Pick<OwnClickHouse, 'settings'>,
  name: string,
  work: (database: BenchDatabase) => Promise<T>,
): Promise<T> {
  const config = parseConfig({ ...engine.settings, CLICKHOUSE_DATABASE: `${TEST_DATABASES}${name}` })
  const server = createDatabase(config.clickhouse, 'write', { database: 'default' })
  const db = createDatabase(config.clickhouse, 'write')
  const reader = createDatabase(config.clickhouse, 'read')
  const registry = loadRegistry()
  try {
    await migrate(server, db, config.clickhouse.database, silent)
    await storeRegistry(db, registry, silent)
    return await work({ config, registry, db, reader })
  } finally {
    await server.command({ name: 'drop', sql: `DROP DATABASE IF EXISTS ${config.clickhouse.database} SYNC` })
    await Promise.all([server.close(), db.close(), reader.close()])
  }
}
