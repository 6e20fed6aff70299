import { closeSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { resolveLibchdb } from 'chdb/libchdb'
import { DataType, load, open } from 'ffi-rs'
import { DataError, toReason } from '../../shared/errors.ts'

const ENGINE = 'clickhouse'
const SYSTEM = 'system'

/**
 * The engine's shared library and the C library, ready to be called.
 * @throws DataError `config` where npm has no library of ClickHouse for this platform.
 */
export function openLibraries(): void {
  try {
    open({ library: ENGINE, path: resolveLibchdb().path })
  } catch (cause) {
    const platform = `${process.platform}-${process.arch}`
    const remedy = 'run npm ci again, or set CLICKHOUSE_URL to a server of yours'
    throw new DataError('config', `no ClickHouse for ${platform}: ${toReason(cause)}; ${remedy}`, { cause })
  }
  // An empty path is the program itself, which holds the C library.
  open({ library: SYSTEM, path: '' })
}

/**
 * Runs ClickHouse's own `clickhouse-local` in this process until its last statement has ended. Resolves with what it says
 * of a failure, if it says anything here: most of its failures it writes to standard error by itself.
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

/** A named pipe that only its owner may open. */
export function makePipe(path: string): void {
  if (callSystem('mkfifo', [DataType.String, DataType.I32], [path, 0o600]) !== 0) {
    throw new DataError('config', `a named pipe cannot be made at ${path}`)
  }
}

const LOCK_EXCLUSIVE_OR_FAIL = 2 | 4

/**
 * Takes a folder for this process. The system gives it back when the process ends, however it ends.
 * @throws DataError `config` when another process has it.
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

/** Ends this process at once, without the destructors of an engine that still runs. */
export function exitAtOnce(code: number): void {
  callSystem('_exit', [DataType.I32], [code])
}
