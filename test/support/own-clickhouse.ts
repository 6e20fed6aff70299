import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OwnServerOptions } from '../../clickhouse/server/own-server.ts'
import { startChild, untilReady } from '../../tools/children.ts'

/** A running ClickHouse server in a separate process. */
export interface OwnClickHouse {
  readonly url: string
  readonly dataDir: string
  readonly pid: number
  readonly users: OwnServerOptions['users']
  /** The settings to connect to it. */
  readonly settings: Readonly<Record<string, string>>
  /** Null while it runs and after a signal. */
  exitCode(): number | null
  /** Whether it has ended for any reason. */
  hasEnded(): boolean
  /** Stops it in order and removes its data, unless the data folder was given. */
  stop(): Promise<void>
  /** Kills it like a crash (SIGKILL); the data stays. */
  kill(): Promise<void>
}

/** Name prefix of databases for tests and benchmarks. The reader may read these. */
export const TEST_DATABASES = 'test_'

const USERS = {
  writer: { name: 'writer', password: 'password of the writer' },
  reader: { name: 'reader', password: 'password of the reader' },
}

/** The product's server, one process per data folder. Picks a free port by default. */
export async function startOwnClickHouse(options: Partial<OwnServerOptions> = {}): Promise<OwnClickHouse> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'dao-data-clickhouse-')))
  const users = options.users ?? USERS
  const all: OwnServerOptions = {
    host: '127.0.0.1',
    port: 0,
    readable: `${TEST_DATABASES}*.*`,
    maxMemoryBytes: 4 * 1024 ** 3,
    ...options,
    dataDir,
    users,
  }
  const file = join(import.meta.dirname, 'own-clickhouse-process.ts')
  const child = startChild('ClickHouse', file, {}, [JSON.stringify(all)], { keepsOutput: true })
  const ready = await untilReady(child).catch((cause: unknown) => {
    throw new Error(`no ClickHouse over ${dataDir}: ${child.lastOutput().trim()}`, { cause })
  })
  const url = String(ready.url)
  const exited = once(child.process, 'exit')
  return {
    url,
    dataDir,
    users,
    pid: Number(child.process.pid),
    settings: {
      CLICKHOUSE_URL: url,
      CLICKHOUSE_USER: users.writer.name,
      CLICKHOUSE_PASSWORD: users.writer.password,
      CLICKHOUSE_READ_USER: users.reader.name,
      CLICKHOUSE_READ_PASSWORD: users.reader.password,
    },
    exitCode: () => child.process.exitCode,
    hasEnded: () => child.process.exitCode !== null || child.process.signalCode !== null,
    async stop() {
      await child.stop()
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true })
    },
    async kill() {
      child.process.kill('SIGKILL')
      await exited
    },
  }
}
