import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import { migrate } from '../../clickhouse/migrations.ts'
import { type Config, parseConfig } from '../../shared/config/config.ts'
import { createDatabase, type Database, onCluster } from '../../shared/store/store.ts'
import { TEST_DATABASES } from './own-clickhouse.ts'
import { copySchema, emptySchema } from './schema-copy.ts'
import { silent } from './silent.ts'

/** Emptied databases of the shared server from earlier tests of this worker, with their complete schema. */
const emptied = new Set<string>()
/** Emptied databases that are assigned to a configuration. */
const taken = new Set<string>()

function takeEmptied(): string | undefined {
  const [name] = emptied
  if (name === undefined) return undefined
  emptied.delete(name)
  taken.add(name)
  return name
}

/** A configuration for the run's stores, with a unique database and queue prefix. */
export function createTestConfig(settings: Readonly<Record<string, string>> = {}): Config {
  const stores = inject('stores')
  const unique = randomBytes(6).toString('hex')
  return parseConfig({
    ...stores.settings,
    CLICKHOUSE_DATABASE: (isShared(settings) ? takeEmptied() : undefined) ?? `${TEST_DATABASES}${unique}`,
    QUEUE_PREFIX: `test-${unique}`,
    LOG_LEVEL: 'silent',
    // A busy machine may respond slowly.
    API_ANSWER_SECONDS: '150',
    ...settings,
  })
}

export interface TestDatabase {
  readonly db: Database
  /** The same server without a default database, for creating and dropping databases. */
  readonly server: Database
  drop(): Promise<void>
}

/** Whether these settings use the server that all tests share. */
const isShared = (settings: Readonly<Record<string, string>>) =>
  !Object.keys(settings).some((name) => name.startsWith('CLICKHOUSE_'))

/** Creates a migrated database for a test; `empty` omits the schema. */
export async function createTestDatabase(config: Config, options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const { database, cluster } = config.clickhouse
  const server = createDatabase(config.clickhouse, 'write', { database: 'default' })
  const db = createDatabase(config.clickhouse, 'write')
  const remove = () => server.command({ name: 'drop', sql: `DROP DATABASE IF EXISTS ${database}${onCluster(cluster)}` })
  // An earlier test with the same configuration may have left it emptied.
  const exists = taken.delete(database) || emptied.delete(database)
  if (options.empty && exists) await remove()
  if (!options.empty && !exists) await createSchema(config, server, db)
  return {
    db,
    server,
    drop: async () => {
      const isReusable =
        inject('stores').endsWithRun &&
        !options.empty &&
        isOfTemplate(config) &&
        (await emptySchema(server, db, inject('stores').template))
      if (isReusable) emptied.add(database)
      else await remove()
      await Promise.all([db.close(), server.close()])
    },
  }
}

/** On the shared server, copies the schema that was migrated once; migrates on any other server. */
async function createSchema(config: Config, server: Database, db: Database): Promise<void> {
  const { template } = inject('stores')
  await (isOfTemplate(config)
    ? copySchema(server, db, template)
    : migrate(server, db, config.clickhouse.database, silent))
}

const isOfTemplate = ({ clickhouse }: Config) =>
  clickhouse.url === inject('stores').settings.CLICKHOUSE_URL && clickhouse.cluster === undefined
