import { closeSync, mkdirSync, openSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { toHttpUrl } from '../../shared/config/networks.ts'
import { ACCESS_FILE, type ClickHouseAccess, writeAccess } from '../../shared/config/own-stores.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import { findFreePort, probePort } from '../../shared/free-port.ts'
import { writeConfiguration } from './configuration.ts'
import {
  becomeOsUser,
  exitImmediately,
  findOsUser,
  hideEnvironment,
  lockFolder,
  makePipe,
  openLibraries,
  runClickHouseLocal,
} from './native.ts'

export interface OwnServerOptions {
  /** Owned by this process while it runs; created if missing. */
  readonly dataDir: string
  readonly host: string
  /** 0 selects a free port. */
  readonly port: number
  /**
   * Port of ClickHouse's native protocol; undefined disables it. For trusted clients only: in local mode, a wrong
   * password or bytes of another protocol end the engine.
   */
  readonly tcpPort?: number | undefined
  readonly users: Pick<ClickHouseAccess, 'writer' | 'reader'>
  /** The databases and tables that the reader may read, in the form of a grant: `dao_data.*`. */
  readonly readable: string
  /** Bytes for all queries, merges and caches together. */
  readonly maxMemoryBytes: number
  /** Configuration elements without an option here, such as clusters. */
  readonly configuration?: string
  /**
   * The operating-system user that this process switches to; requires root. SQL can then read only this user's files,
   * and not `access.json`, which root owns while the engine runs.
   */
  readonly osUser?: string | undefined
  /** Time limit for running statements during a stop. */
  readonly finishMs?: number
}

export interface OwnServer {
  readonly url: string
  /** Resolves when the engine has ended, with its error message; unexpected without `close`. */
  readonly ended: Promise<string | undefined>
  /**
   * Stops in order: running statements may finish for a while and are then killed. Ends this process if the engine does
   * not end in time.
   */
  close(): Promise<void>
}

const FINISH_MS = 10_000
/** A folder with years of data opens within seconds; a longer start is an error. */
const READY_MS = 300_000
/** Time limit for killed statements to end. */
const END_MS = 3_000
/**
 * Time limit for the engine to close its tables. The engine first waits for its clients to disconnect; with a client
 * that stays connected, the process ends without closing the tables.
 */
const CLOSE_MS = 1_000
const POLL_MS = 25

/** The end of the engine. Without a reason, the engine ended normally or wrote the failure to standard error. */
interface EngineEnd {
  readonly reason: string | undefined
}

/**
 * The request line contains the keys of a statement's entities: 2 MB for 100,000 tokens. profiles.xml sets the same
 * limit for servers in containers.
 */
const MAX_REQUEST_LINE_BYTES = 16 * 1024 * 1024
const REQUEST_LIMITS = ['http_max_uri_size', 'http_max_field_value_size']

/**
 * Runs ClickHouse's own server in this process; one server per process. The package chdb contains `clickhouse-local`,
 * which listens like a server after SYSTEM START LISTEN. The server runs while it waits for statements from its last
 * input file, a named pipe without a writer. Its files and `access.json`, which has its address and passwords for other
 * processes, are in the data folder.
 * @throws DataError `config` if the folder or a port is unusable, or there is no library for this platform.
 */
export async function startOwnServer(options: OwnServerOptions): Promise<OwnServer> {
  const dataDir = resolve(options.dataDir)
  const osUser = options.osUser === undefined ? undefined : findOsUser(options.osUser)
  hideEnvironment()
  openLibraries()
  const configuration = prepareFolder(dataDir, options)
  const port = await requirePort(options.host, options.port)
  if (options.tcpPort !== undefined) await requirePort(options.host, options.tcpPort)
  const keepsRunning = openSync(configuration.pipe, 'r+')
  const url = toHttpUrl(options.host, port)
  if (osUser !== undefined) {
    // Before the switch: the engine's user must not read the file, so it cannot write the file later either.
    writeFiles(dataDir, () => writeAccess(dataDir, { url, ...options.users }))
    becomeOsUser(osUser, dataDir, ACCESS_FILE)
  }
  let end: EngineEnd | undefined
  const ended = runClickHouseLocal([
    `--path=${dataDir}`,
    `--config-file=${configuration.config}`,
    ...REQUEST_LIMITS.map((setting) => `--${setting}=${MAX_REQUEST_LINE_BYTES}`),
    `--listen_host=${options.host}`,
    `--http_port=${port}`,
    ...(options.tcpPort === undefined ? [] : [`--tcp_port=${options.tcpPort}`]),
    ...[configuration.start, configuration.pipe].flatMap((file) => ['--queries-file', file]),
  ]).then((reason) => {
    end = { reason }
    return reason
  })
  // The regular exit would run destructors while the engine's threads run, and hang.
  process.once('exit', (code) => {
    if (end === undefined) exitImmediately(code)
  })
  const { name: username, password } = options.users.writer
  const log = { level: ClickHouseLogLevel.OFF }
  const admin = createClient({ url, username, password, log, max_open_connections: 1, request_timeout: END_MS })
  await untilReady(admin, () => end, dataDir)
  if (osUser === undefined) writeFiles(dataDir, () => writeAccess(dataDir, { url, ...options.users }))
  return {
    url,
    ended,
    close: async () => {
      await finishStatements(admin, options)
      await admin.close()
      forgetAddress(dataDir, options)
      closeSync(keepsRunning)
      await Promise.race([ended, wait(CLOSE_MS, undefined, { ref: false })])
      // The tables are safe, as after any crash; the engine's destructors could hang.
      if (end === undefined) exitImmediately(0)
    },
  }
}

function prepareFolder(dataDir: string, options: OwnServerOptions) {
  const dir = join(dataDir, 'server')
  const pipe = join(dir, 'stop.pipe')
  const { users, readable, maxMemoryBytes, tcpPort, configuration: more = '' } = options
  return writeFiles(dataDir, () => {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    lockFolder(dataDir)
    rmSync(pipe, { force: true })
    makePipe(pipe)
    const listensToTcp = tcpPort !== undefined
    return { ...writeConfiguration({ dir, ...users, readable, maxMemoryBytes, listensToTcp, more }), pipe }
  })
}

/** @throws DataError `config` if the folder is not writable. */
function writeFiles<T>(dataDir: string, write: () => T): T {
  try {
    return write()
  } catch (cause) {
    if (cause instanceof DataError) throw cause
    throw new DataError('config', `ClickHouse cannot write its folder ${dataDir}: ${toReason(cause)}`, { cause })
  }
}

/**
 * Returns the port, or a free one for 0: the engine does not report a port that it selects itself.
 * @throws DataError `config` if the port is unusable.
 */
async function requirePort(host: string, port: number): Promise<number> {
  try {
    if (port === 0) return await findFreePort(host)
    await probePort(host, port)
    return port
  } catch (cause) {
    throw new DataError('config', `ClickHouse cannot listen on ${host}:${port}: ${toReason(cause)}`, { cause })
  }
}

async function untilReady(
  admin: ClickHouseClient,
  readEnd: () => EngineEnd | undefined,
  dataDir: string,
): Promise<void> {
  const deadline = performance.now() + READY_MS
  for (;;) {
    const end = readEnd()
    if (end !== undefined) {
      const reason = end.reason ?? 'see the reason above'
      throw new DataError('config', `ClickHouse over ${dataDir} could not start: ${reason}`)
    }
    // A statement instead of a ping: another server on the port does not accept the password.
    const { success } = await admin.ping({ select: true })
    if (success) return
    if (performance.now() > deadline)
      throw new DataError('config', `ClickHouse over ${dataDir} has not responded for ${READY_MS / 1000} s`)
    await wait(POLL_MS)
  }
}

/** Waits for the running statements, kills newer ones, and stops listening. */
async function finishStatements(
  admin: ClickHouseClient,
  { finishMs = FINISH_MS, tcpPort }: OwnServerOptions,
): Promise<void> {
  try {
    const running = await readRunning(admin)
    await until(finishMs, async () => {
      const stillRunning = await readRunning(admin)
      return running.every((id) => !stillRunning.includes(id))
    })
    if (tcpPort !== undefined) await admin.command({ query: 'SYSTEM STOP LISTEN TCP' })
    await admin.command({ query: 'KILL QUERY WHERE query_id != currentQueryID() ASYNC' })
    await until(END_MS, async () => (await readRunning(admin)).length === 0)
    await admin.command({ query: 'SYSTEM STOP LISTEN HTTP' })
  } catch (error) {
    // For example, ClickHouse is out of memory. The process ends even if statements are running.
    console.error(`ClickHouse is stopped with running statements: ${toReason(error)}`)
  }
}

/** Removes the address from `access.json`, because another server may listen there later. */
function forgetAddress(dataDir: string, { users }: OwnServerOptions): void {
  try {
    writeAccess(dataDir, users)
  } catch (error) {
    console.error(`ClickHouse's last address remains in ${dataDir}: ${toReason(error)}`)
  }
}

async function readRunning(admin: ClickHouseClient): Promise<string[]> {
  const query = 'SELECT query_id FROM system.processes WHERE query_id != currentQueryID()'
  const result = await admin.query({ query, format: 'JSONCompactEachRow' })
  return (await result.json<[string]>()).map(([id]) => id)
}

async function until(deadlineMs: number, isSo: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + deadlineMs
  while (performance.now() < end && !(await isSo())) await wait(POLL_MS)
}
