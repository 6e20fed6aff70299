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
  exitAtOnce,
  findOsUser,
  hideEnvironment,
  lockFolder,
  makePipe,
  openLibraries,
  runClickHouseLocal,
} from './native.ts'

export interface OwnServerOptions {
  /** Owned by this process alone while it runs; created where it is missing. */
  readonly dataDir: string
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  /**
   * For ClickHouse's native protocol; undefined listens to none. For trusted clients only: a wrong password there, or bytes
   * that are no ClickHouse, end the engine in its local mode.
   */
  readonly tcpPort?: number | undefined
  readonly users: Pick<ClickHouseAccess, 'writer' | 'reader'>
  /** What the reader may read, as a grant names it: `dao_data.*`. */
  readonly readable: string
  /** Bytes, for all queries, merges and caches together. */
  readonly maxMemoryBytes: number
  /** Configuration elements for what has no option here, such as the clusters that the server knows. */
  readonly configuration?: string
  /**
   * The user of the operating system that this process becomes, which takes root. SQL can then read only files that this user
   * may read: not `access.json`, which stays root's while the engine runs.
   */
  readonly osUser?: string | undefined
  /** How long running statements may finish when it stops. */
  readonly finishMs?: number
}

export interface OwnServer {
  readonly url: string
  /** Resolves when the engine has ended, with what it says of a failure; by itself it never should. */
  readonly ended: Promise<string | undefined>
  /**
   * Stops in order: statements that run now may finish for a while, then they are stopped. Ends this process where the
   * engine does not end in time.
   */
  close(): Promise<void>
}

const FINISH_MS = 10_000
/** A folder with years of data opens within seconds; whoever waits longer has to be told. */
const READY_MS = 300_000
/** How long stopped statements may take to be gone. */
const END_MS = 3_000
/**
 * How long the engine may take to close its tables. It waits for its clients to hang up first; with one that does not, the
 * process ends without that.
 */
const CLOSE_MS = 1_000
const POLL_MS = 25

/** How the engine ended: by a failure that it tells here, or else by none or one that it wrote to standard error. */
interface EngineEnd {
  readonly reason: string | undefined
}

/** A request's line has the keys of those whom a statement is about: 2 MB for 100,000 tokens. The same is in profiles.xml, which holds for a server in a container. */
const MAX_REQUEST_LINE_BYTES = 16 * 1024 * 1024
const REQUEST_LIMITS = ['http_max_uri_size', 'http_max_field_value_size']

/**
 * Runs ClickHouse's own server in this process, which has room for one: the package chdb holds `clickhouse-local`, which
 * listens like a server once it is told to. It lives as long as it has something to read from its last file of
 * statements, a named pipe that nothing is ever written to. Its files and `access.json`, which tells other parts how to
 * reach it, are in the data folder.
 * @throws DataError `config` when the folder or a port cannot be used, or there is no library for this platform.
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
    // The user of the engine may not read it, and so may not write it later.
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
  // The system's own exit would run destructors under the engine's threads, and never come back.
  process.once('exit', (code) => {
    if (end === undefined) exitAtOnce(code)
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
      // Its tables are safe as they are after any crash; waiting for its destructors could take for ever.
      if (end === undefined) exitAtOnce(0)
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

/** @throws DataError `config` when a folder cannot be written. */
function writeFiles<T>(dataDir: string, write: () => T): T {
  try {
    return write()
  } catch (cause) {
    if (cause instanceof DataError) throw cause
    throw new DataError('config', `ClickHouse cannot write its folder ${dataDir}: ${toReason(cause)}`, { cause })
  }
}

/**
 * The port, or a free one for 0: the engine binds what it is told and reports no choice of its own.
 * @throws DataError `config` when it cannot be listened on.
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
      const reason = end.reason ?? 'its reason stands above'
      throw new DataError('config', `ClickHouse over ${dataDir} could not start: ${reason}`)
    }
    // With a statement and not with a ping: whoever else listens there does not know the password.
    const { success } = await admin.ping({ select: true })
    if (success) return
    if (performance.now() > deadline)
      throw new DataError('config', `ClickHouse over ${dataDir} does not answer since ${READY_MS / 1000} s`)
    await wait(POLL_MS)
  }
}

/** Waits until the statements that run now have ended, stops those that came meanwhile, and lets nobody in any more. */
async function finishStatements(
  admin: ClickHouseClient,
  { finishMs = FINISH_MS, tcpPort }: OwnServerOptions,
): Promise<void> {
  try {
    const running = await readRunning(admin)
    await until(finishMs, async () => {
      const left = await readRunning(admin)
      return running.every((id) => !left.includes(id))
    })
    if (tcpPort !== undefined) await admin.command({ query: 'SYSTEM STOP LISTEN TCP' })
    await admin.command({ query: 'KILL QUERY WHERE query_id != currentQueryID() ASYNC' })
    await until(END_MS, async () => (await readRunning(admin)).length === 0)
    await admin.command({ query: 'SYSTEM STOP LISTEN HTTP' })
  } catch (error) {
    // Out of memory, for one: it ends all the same.
    console.error(`ClickHouse is stopped with statements under way: ${toReason(error)}`)
  }
}

/** Nobody is sent to where it listened: somebody else may listen there by then. */
function forgetAddress(dataDir: string, { users }: OwnServerOptions): void {
  try {
    writeAccess(dataDir, users)
  } catch (error) {
    console.error(`ClickHouse's last address stays in ${dataDir}: ${toReason(error)}`)
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
