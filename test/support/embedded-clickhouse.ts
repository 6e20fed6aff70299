import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startChild, untilReady } from '../../tools/children.ts'

/** A running embedded ClickHouse in a process of its own: users `writer` and `reader`, without passwords unless given. */
export interface EmbeddedProcess {
  readonly url: string
  readonly dataDir: string
  readonly pid: number
  /** Null while it runs and after a signal. */
  exitCode(): number | null
  /** Stops it in order and removes its data, unless the data folder was given. */
  stop(): Promise<void>
  /** Ends it as a crash would (SIGKILL); the data stays. */
  kill(): Promise<void>
}

/** A process of its own because the engine opens one data folder per process. Picks a free port. */
export async function startEmbeddedClickHouse(
  options: { dataDir?: string; password?: string } = {},
): Promise<EmbeddedProcess> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'embedded-clickhouse-test-')))
  const env = {
    DATA_DIR: dataDir,
    CLICKHOUSE_EMBEDDED_HOST: '127.0.0.1',
    CLICKHOUSE_EMBEDDED_PORT: '0',
    CLICKHOUSE_USER: 'writer',
    CLICKHOUSE_PASSWORD: options.password ?? '',
    CLICKHOUSE_READ_USER: 'reader',
    CLICKHOUSE_READ_PASSWORD: options.password ?? '',
    UV_THREADPOOL_SIZE: '16',
  }
  const file = join(import.meta.dirname, '../../clickhouse/embedded.ts')
  const child = startChild('embedded ClickHouse', file, env, ['--serve'])
  const { url } = await untilReady(child)
  const exited = once(child.process, 'exit')
  return {
    url: String(url),
    dataDir,
    pid: Number(child.process.pid),
    exitCode: () => child.process.exitCode,
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
