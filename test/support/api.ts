import type { AddressInfo } from 'node:net'
import type { AppOptions } from '../../api/app.ts'
import { createApiServer } from '../../api/server.ts'
import { storeRegistry } from '../../clickhouse/registry.ts'
import type { Config } from '../../shared/config/config.ts'
import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'
import {
  type ChangeEvent,
  type ChangeFeed,
  type ChangeStream,
  createDatabase,
  type Database,
} from '../../shared/store/store.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { createTestDatabase } from './database.ts'
import { silent } from './silent.ts'

/** A change feed driven by a test; `unavailable()` makes it report that the source is unavailable. */
export interface HandFeed extends ChangeFeed {
  commit(dataset: string, range?: { from: number; to: number }): void
  unavailable(is: boolean): void
}

export function createHandFeed(now: () => number = Date.now): HandFeed {
  const versions = new Map<string, { version: number; since: number }>()
  const listeners: ((change: ChangeEvent | undefined) => void)[] = []
  let [isUnavailable, changes, base] = [false, 0, { version: 0, since: 0 }]
  const of = (dataset: string) => versions.get(dataset) ?? base
  const notify = (change: ChangeEvent | undefined) => {
    changes++
    for (const listener of listeners) listener(change)
  }
  return {
    version: (dataset) => (isUnavailable ? undefined : String(of(dataset).version)),
    since: (dataset) => of(dataset).since,
    get source() {
      return isUnavailable ? ('nobody' as const) : ('redis' as const)
    },
    get changes() {
      return changes
    },
    follow: (listener) => void listeners.push(listener),
    commit: (dataset, range = undefined) => {
      versions.set(dataset, { version: changes + 1, since: now() })
      notify({ dataset, ...range })
    },
    unavailable: (is) => {
      isUnavailable = is
      notify(undefined)
    },
    receive: () => {},
    renew: () => {
      versions.clear()
      base = { version: changes + 1, since: now() }
      notify(undefined)
    },
    close: () => {},
  }
}

/** An empty change stream. */
export const emptyLog: ChangeStream = { version: '0-0', after: async () => [], follow: () => {}, close: () => {} }

export interface TestApi {
  readonly url: string
  /** Aborts all running responses. */
  drop(): void
  close(): Promise<void>
}

/** Starts an API on a free port over the test's database. */
export async function startApi(options: {
  config: Config
  db: Database
  registry: Registry
  changeFeed: ChangeFeed
  now?: () => number
  queue?: NonNullable<AppOptions['queue']>
  changeStream?: ChangeStream
  limits?: NonNullable<AppOptions['limits']>
  heartbeatMs?: number
  stopping?: AbortSignal
  warmStart?: NonNullable<AppOptions['warmStart']>
  metrics?: AppOptions['metrics']
}): Promise<TestApi> {
  const server = createApiServer({ changeStream: emptyLog, metrics: createMetrics('test'), ...options, log: silent })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    drop: () => server.closeAllConnections(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Creates a migrated database with the shipped registry, a writer and the API's reader. */
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
