import type { AddressInfo } from 'node:net'
import { inject } from 'vitest'
import { createApiServer } from '../../api/server.ts'
import { storeRegistry } from '../../clickhouse/registry.ts'
import { createDatabase, type Database } from '../../shared/clickhouse.ts'
import type { CommitFeed } from '../../shared/commits.ts'
import type { Config } from '../../shared/config.ts'
import { createMetrics } from '../../shared/metrics.ts'
import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'
import { createTestConfig, createTestDatabase } from './database.ts'
import { silent } from './silent.ts'

/** A commit feed that a test turns by hand; `away()` is what it says while Redis cannot be heard. */
export interface HandFeed extends CommitFeed {
  commit(dataset: string): void
  away(is: boolean): void
}

export function createHandFeed(): HandFeed {
  const versions = new Map<string, number>()
  let isAway = false
  return {
    version: (dataset) => (isAway ? undefined : String(versions.get(dataset) ?? 'none')),
    commit: (dataset) => versions.set(dataset, (versions.get(dataset) ?? 0) + 1),
    away: (is) => {
      isAway = is
    },
    close: () => {},
  }
}

export interface TestApi {
  readonly url: string
  close(): Promise<void>
}

/** An API on a free port over a database that the test has made. */
export async function startApi(options: {
  config: Config
  db: Database
  registry: Registry
  commits: CommitFeed
  now?: () => number
}): Promise<TestApi> {
  const server = createApiServer({ ...options, log: silent, metrics: createMetrics('test') })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** The settings with which an API of a test reads: the embedded engine has a reader, other stores only their user. */
export function createApiConfig(): Config {
  const { clickhouseUser, clickhousePassword } = inject('stores')
  if (clickhouseUser === 'writer' && clickhousePassword === '') return createTestConfig()
  return createTestConfig({ CLICKHOUSE_READ_USER: clickhouseUser, CLICKHOUSE_READ_PASSWORD: clickhousePassword })
}

/** A migrated database with the shipped registry, a writer and the API's own reader. */
export async function createApiDatabase(config: Config) {
  const registry = loadRegistry()
  const { db: writer, drop } = await createTestDatabase(config)
  await storeRegistry(writer, registry, silent)
  const db = createDatabase(config.clickhouse, 'read')
  return {
    registry,
    writer,
    db,
    drop: async () => {
      await db.close()
      await drop()
    },
  }
}
