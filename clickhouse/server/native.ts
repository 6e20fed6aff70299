import { execFileSync } from 'node:child_process'
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  lchownSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { resolveLibchdb } from 'chdb/libchdb'
import { DataType, load, open } from 'ffi-rs'
import { DataError, toReason } from '../../shared/errors.ts'

const ENGINE = 'clickhouse'
const SYSTEM = 'system'

/**
 * Loads the engine's shared library and the C library.
 * @throws DataError `config` if npm has no ClickHouse library for this platform.
 */
export function openLibraries(): void {
  try {
    open({ library: ENGINE, path: resolveLibchdb().path })
  } catch (cause) {
    const platform = `${process.platform}-${process.arch}`
    const remedy = 'run npm ci again, or set CLICKHOUSE_URL to your own server'
    throw new DataError('config', `no ClickHouse for ${platform}: ${toReason(cause)}; ${remedy}`, { cause })
  }
  // An empty path is the program itself, which contains the C library.
  open({ library: SYSTEM, path: '' })
}

/**
 * Runs `clickhouse-local` in this process until its last statement has ended. Resolves with the message of a failure,
 * if there is one; the engine writes most failures to standard error itself.
 */
export async function runClickHouseLocal(args: readonly string[]): Promise<string | undefined> {
  const all = ['clickhouse', ...args]
  const result = (await load({
    library: ENGINE,
    funcName: 'chdb_query_cmdline',
    retType: DataType.U64,
    paramsType: [DataType.I32, DataType.StringArray],
    paramsValue: [all.length, all],
    runInNewThread: true,
  })) as number
  const readError = (retType: DataType.U64 | DataType.String) =>
    load({
      library: ENGINE,
      funcName: 'chdb_result_error',
      retType,
      paramsType: [DataType.U64],
      paramsValue: [result],
    })
  if (result === 0 || Number(readError(DataType.U64)) === 0) return undefined
  return String(readError(DataType.String)).split('\n', 1)[0]
}

const callSystem = (funcName: string, paramsType: DataType[], paramsValue: unknown[]): number =>
  load({ library: SYSTEM, funcName, retType: DataType.I32, paramsType, paramsValue }) as number

/** Creates a named pipe that only its owner can open. */
export function makePipe(path: string): void {
  if (callSystem('mkfifo', [DataType.String, DataType.I32], [path, 0o600]) !== 0) {
    throw new DataError('config', `a named pipe cannot be made at ${path}`)
  }
}

const LOCK_EXCLUSIVE_OR_FAIL = 2 | 4

/**
 * Locks a folder for this process. The system releases the lock when the process ends in any way.
 * @throws DataError `config` if another process has the lock.
 */
export function lockFolder(dir: string): void {
  const path = join(dir, 'server.lock')
  const file = openSync(path, 'a', 0o600)
  if (callSystem('flock', [DataType.I32, DataType.I32], [file, LOCK_EXCLUSIVE_OR_FAIL]) === 0) {
    writeFileSync(path, `${process.pid}\n`)
    return
  }
  closeSync(file)
  throw new DataError('config', `${dir} is in use by another ClickHouse (its process id is in ${path})`)
}

/** Ends this process without the destructors of a running engine. */
export function exitImmediately(code: number): void {
  callSystem('_exit', [DataType.I32], [code])
}

/**
 * Positions of the first and last address of the environment in `/proc/<pid>/stat`, counted from the state, which
 * follows the name.
 */
const [ENV_START, ENV_END] = [47, 48]

/**
 * Overwrites the initial environment of this process, because SQL in the engine can read `/proc/self/environ`, and the
 * environment may contain provider keys. `process.env` keeps its values. DATA_DIR remains readable, because
 * operators and tests use it to find the process of a data folder. Systems without /proc need no change.
 */
export function hideEnvironment(): void {
  if (!existsSync('/proc/self/environ')) return
  const variables = Object.entries(process.env)
  const stat = readFileSync('/proc/self/stat', 'utf8')
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const [start = 0, end = 0] = [fields[ENV_START], fields[ENV_END]]
  const shown = Buffer.alloc(end - start)
  const { DATA_DIR: dataDir } = process.env
  if (dataDir !== undefined) shown.write(`DATA_DIR=${dataDir}\0`)
  const memory = openSync('/proc/self/mem', 'r+')
  try {
    writeSync(memory, shown, 0, shown.length, start)
  } catch (cause) {
    throw new DataError('config', `ClickHouse's environment cannot be hidden: ${toReason(cause)}`, { cause })
  } finally {
    closeSync(memory)
  }
  for (const [name, value] of variables) process.env[name] = value
}

/** A user of the operating system. */
export interface OsUser {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

/** @throws DataError `config` if the user does not exist or this process may not change its user. */
export function findOsUser(name: string): OsUser {
  const setting = `CLICKHOUSE_EMBEDDED_OS_USER=${name}`
  if (process.getuid?.() !== 0)
    throw new DataError('config', `${setting}: only root may run ClickHouse as another user`)
  try {
    const [uid = 0, gid = 0] = ['-u', '-g'].map((id) =>
      Number(execFileSync('id', [id, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })),
    )
    return { name, uid, gid }
  } catch (cause) {
    throw new DataError('config', `${setting}: this machine has no such user`, { cause })
  }
}

/**
 * Transfers a folder to a user and permanently switches this process to that user.
 * @throws DataError `config` if the user cannot access the folder.
 */
export function becomeOsUser({ name, uid, gid }: OsUser, dir: string, except: string): void {
  for (const path of [dir, ...readdirSync(dir, { recursive: true, encoding: 'utf8' }).map((file) => join(dir, file))])
    if (path !== join(dir, except)) lchownSync(path, uid, gid)
  process.setgroups?.([gid])
  process.setgid?.(gid)
  process.setuid?.(uid)
  try {
    accessSync(dir, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw new DataError('config', `CLICKHOUSE_EMBEDDED_OS_USER: ${name} cannot enter ${dir}: ${toReason(cause)}`, {
      cause,
    })
  }
}
