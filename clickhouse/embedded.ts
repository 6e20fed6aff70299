import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadConfig, toChildEnvironment } from '../shared/config.ts'
import { announceReady, isMain, onStopSignal, runPart, runProgram } from '../shared/process.ts'
import { openEngine } from './embedded/engine.ts'
import type { HandlerContext } from './embedded/handler.ts'
import { createLeases } from './embedded/leases.ts'
import { createResultPipes } from './embedded/result-pipe.ts'
import { createListener } from './embedded/server.ts'
import { type Credentials, type ReaderLimits, type Role, toLimitSettings } from './embedded/users.ts'

export type EmbeddedClickHouseOptions = {
  /** Owned by this process alone while it runs; created when missing. */
  readonly dataDir: string
  readonly host?: string
  /** 0 picks a free port. */
  readonly port?: number
  /** Statements that run at once; libuv's thread pool has to be larger (see `main` below). */
  readonly connections?: number
  /** Requests that wait for a connection before the next one gets code 202 and status 503. */
  readonly maxWaiting?: number
  readonly users: Readonly<Record<Role, Credentials>>
  readonly readerLimits?: ReaderLimits
  /** Bytes: the engine's own bound for all queries, merges and caches together. */
  readonly maxServerMemoryBytes?: number
  /** A ClickHouse configuration file for what has no option here, such as the clusters it knows. */
  readonly configFile?: string
  /** Bytes: a larger statement, or a larger insert, gets status 413. */
  readonly maxStatementBytes?: number
  readonly maxInsertBytes?: number
  /** How long `close` lets running statements finish before it stops them. */
  readonly closeDeadlineMs?: number
  /** Called for failures that are not the client's. */
  readonly log?: (message: string, error: unknown) => void
}

export type EmbeddedClickHouse = { readonly url: string; readonly port: number; close(): Promise<void> }

const MIB = 1024 * 1024

const DEFAULT_READER_LIMITS: ReaderLimits = {
  maxExecutionSeconds: 60,
  maxResultRows: 50_000_000,
  maxMemoryBytes: 1024 * MIB,
}

/**
 * Opens a ClickHouse data directory inside this process and serves the part of ClickHouse's HTTP interface that
 * `@clickhouse/client` uses. Not supported, and answered with code 48: `session_id`, `role`, ClickHouse's own block
 * compression, `INSERT ... SELECT FROM input()`.
 *
 * Throws an Error that names the directory when it cannot be written or belongs to another process, and the system's
 * error when the address cannot be bound.
 */
export async function createEmbeddedClickHouse(options: EmbeddedClickHouseOptions): Promise<EmbeddedClickHouse> {
  const connections = options.connections ?? 4
  const dataDir = resolve(options.dataDir)
  const engine = await openEngine(dataDir, {
    maxServerMemoryBytes: options.maxServerMemoryBytes ?? 4096 * MIB,
    markCacheBytes: 256 * MIB,
    backgroundPoolSize: 2,
    ...(options.configFile === undefined ? {} : { configFile: options.configFile }),
  })
  // What a killed process left behind was never acknowledged.
  const spoolDir = join(dataDir, 'embedded-spool')
  const pipesDir = join(dataDir, 'embedded-pipes')
  for (const folder of [spoolDir, pipesDir]) {
    await rm(folder, { recursive: true, force: true })
    await mkdir(folder)
  }
  const context: HandlerContext = {
    engine,
    leases: createLeases(connections, options.maxWaiting ?? 256),
    pipes: await createResultPipes(pipesDir, connections),
    spoolDir,
    bodyLimits: {
      maxStatementBytes: options.maxStatementBytes ?? 64 * MIB,
      maxInsertBytes: options.maxInsertBytes ?? 4096 * MIB,
    },
    users: options.users,
    readerLimits: toLimitSettings(options.readerLimits ?? DEFAULT_READER_LIMITS),
  }
  const { listener, stop } = createListener(context, options.log ?? (() => undefined))
  // Bound parameters travel in the URL, so the request line may be long.
  const server = createServer({ maxHeaderSize: MIB, keepAliveTimeout: 10_000, requestTimeout: 0 }, listener)
  try {
    await listen(server, options.port ?? 0, options.host ?? '127.0.0.1')
  } catch (error) {
    await engine.close()
    throw error
  }
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${options.host ?? '127.0.0.1'}:${port}`,
    port,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeIdleConnections()
      await stop(options.closeDeadlineMs ?? 10_000)
      server.closeAllConnections()
      await closed
      await engine.close()
    },
  }
}

async function listen(server: Server, port: number, host: string): Promise<void> {
  server.listen(port, host)
  await once(server, 'listening')
}

/** The word that only a program which starts itself again says. */
const SERVE = '--serve'

/** Each running statement holds a thread of libuv's pool; the rest is for files and for stopping statements. */
const SPARE_THREADS = 8

/**
 * The size of libuv's thread pool is read from the environment once, before any module of ours runs: loading TypeScript
 * already uses the pool. So the program starts itself again with the size set.
 */
async function main(): Promise<void> {
  const { clickhouse } = loadConfig()
  return startAgain(clickhouse.embedded.connections + SPARE_THREADS)
}

async function serve(): Promise<void> {
  const { clickhouse } = loadConfig()
  const embedded = await createEmbeddedClickHouse({
    ...clickhouse.embedded,
    users: {
      writer: { name: clickhouse.user, password: clickhouse.password },
      reader: { name: clickhouse.readUser, password: clickhouse.readPassword },
    },
    log: (message, error) => console.error(`embedded ClickHouse: ${message}`, error),
  })
  onStopSignal(() => embedded.close())
  announceReady({ url: embedded.url })
}

async function startAgain(threads: number): Promise<void> {
  const child = spawn(process.execPath, [...process.execArgv, fileURLToPath(import.meta.url), SERVE], {
    // The engine's time zone is the process's, and every time here is UTC.
    env: toChildEnvironment({ UV_THREADPOOL_SIZE: String(threads), TZ: 'UTC' }),
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    // Ctrl-C must reach only this process: the child would take our SIGTERM for the second signal and exit at once.
    detached: true,
  })
  const exited = once(child, 'exit')
  onStopSignal(async () => {
    child.kill('SIGTERM')
    await exited
  })
  const [code] = await exited
  process.exit(typeof code === 'number' ? code : 1)
}

if (isMain(import.meta.url)) {
  if (process.argv[2] === SERVE) runProgram(serve)
  else runPart('npm run clickhouse: the embedded ClickHouse, one per data folder.', main)
}
