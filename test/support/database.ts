import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import { migrate } from '../../clickhouse/migrate.ts'
import { type Config, parseConfig } from '../../shared/config/config.ts'
import { createDatabase, type Database } from '../../shared/store/clickhouse.ts'
import { onCluster } from '../../shared/store/topology.ts'
import { TEST_DATABASES } from './own-clickhouse.ts'
import { copySchema, emptySchema } from './schema-copy.ts'
import { silent } from './silent.ts'

/** Databases of the shared server that tests of this worker have left empty, with their whole schema. */
const emptied = new Set<string>()
/** Those of them that a configuration names now. */
const taken = new Set<string>()

function takeEmptied(): string | undefined {
  const [name] = emptied
  if (name === undefined) return undefined
  emptied.delete(name)
  taken.add(name)
  return name
}

/** A configuration that points at the run's stores, with a database and a queue prefix nobody else uses. */
export function createTestConfig(settings: Readonly<Record<string, string>> = {}): Config {
  const stores = inject('stores')
  const unique = randomBytes(6).toString('hex')
  return parseConfig({
    ...stores.settings,
    CLICKHOUSE_DATABASE: (isShared(settings) ? takeEmptied() : undefined) ?? `${TEST_DATABASES}${unique}`,
    QUEUE_PREFIX: `test-${unique}`,
    LOG_LEVEL: 'silent',
    // A busy machine may take long for an answer.
    API_ANSWER_SECONDS: '150',
    ...settings,
  })
}

export interface TestDatabase {
  readonly db: Database
  /** The same server without a database of its own, for making and dropping databases. */
  readonly server: Database
  drop(): Promise<void>
}

/** Whether these settings leave the database on the server that all tests share. */
const isShared = (settings: Readonly<Record<string, string>>) =>
  !Object.keys(settings).some((name) => name.startsWith('CLICKHOUSE_'))

/** A migrated database of the test's own; `empty` leaves the schema out. */
export async function createTestDatabase(config: Config, options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const { database, cluster } = config.clickhouse
  const server = createDatabase(config.clickhouse, 'write', { database: 'default' })
  const db = createDatabase(config.clickhouse, 'write')
  const remove = () => server.command({ name: 'drop', sql: `DROP DATABASE IF EXISTS ${database}${onCluster(cluster)}` })
  // Of the same configuration one test may have left it empty for the next.
  const isMade = taken.delete(database) || emptied.delete(database)
  if (options.empty && isMade) await remove()
  if (!options.empty && !isMade) await createSchema(config, server, db)
  return {
    db,
    server,
    drop: async () => {
      const isLeft =
        inject('stores').endsWithRun &&
        !options.empty &&
        isOfTemplate(config) &&
        (await emptySchema(server, db, inject('stores').template))
      if (isLeft) emptied.add(database)
      else await remove()
      await Promise.all([db.close(), server.close()])
    },
  }
}

/** On the server that all tests share, what migrating made once is copied; any other is migrated. */
async function createSchema(config: Config, server: Database, db: Database): Promise<void> {
  const { template } = inject('stores')
  await (isOfTemplate(config)
    ? copySchema(server, db, template)
    : migrate(server, db, config.clickhouse.database, silent))
}

const isOfTemplate = ({ clickhouse }: Config) =>
  clickhouse.url === inject('stores').settings.CLICKHOUSE_URL && clickhouse.cluster === undefined
