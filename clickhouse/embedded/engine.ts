import { randomUUID } from 'node:crypto'
import { access, constants, mkdir } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { drainPending, Session } from 'chdb'

/** One statement for the engine, on a connection of its own. */
export type EngineStatement = {
  readonly sql: string
  readonly database: string
  /** Engine settings as text; they last as long as the statement. */
  readonly settings: ReadonlyMap<string, string>
  /** Bound parameters in the escaped text form of the HTTP interface. */
  readonly parameters: ReadonlyMap<string, string>
  /** Format of a result that the statement does not send elsewhere. */
  readonly format: string
  /** Refuse writes in the engine: 1 refuses changes of settings too, 2 does not. */
  readonly readonly: 0 | 1 | 2
  /** Aborting stops the statement inside the engine. */
  readonly signal: AbortSignal
}

/** `rows` counts what the statement returned or wrote. */
export type EngineResult = { readonly bytes: Uint8Array; readonly rows: number; readonly elapsedSeconds: number }

export type Engine = {
  readonly version: string
  /** Resolves when the statement is done and, for a write, stored. Throws what the engine threw. */
  run(statement: EngineStatement): Promise<EngineResult>
  close(): Promise<void>
}

export type EngineLimits = {
  readonly maxServerMemoryBytes: number
  readonly markCacheBytes: number
  readonly backgroundPoolSize: number
  /** A ClickHouse configuration file for what has no setting here. */
  readonly configFile?: string
}

/**
 * Opens a chDB data directory, creating it where it is missing. Throws an Error that names the directory when it
 * cannot be written or another process has it open.
 *
 * Every statement gets a connection of its own: opening one takes about 0.1 ms, and settings, parameters and database
 * of one request cannot reach the next, whatever became of it. `SET ... = DEFAULT` on a kept connection does not give
 * that: for a parameter it stores the text "DEFAULT".
 */
export async function openEngine(dataDir: string, limits: EngineLimits): Promise<Engine> {
  await ensureWritable(dataDir)
  const admin = openFirstConnection(dataDir, limits)
  const version = admin.query('SELECT version()', 'TSVRaw').trim()

  async function run(statement: EngineStatement): Promise<EngineResult> {
    const token = randomUUID()
    const connection = new Session(dataDir)
    try {
      // One call for everything: it runs off the event loop, and each call more would cost as much as opening.
      const sql = `${toPrelude(statement, token)};\n${statement.sql}`
      const running = connection.queryAsync(sql, { format: statement.format })
      const result = await stopOnAbort(running, statement.signal, () => killStatement(admin, token))
      return { bytes: result.bytes(), rows: result.rowsRead, elapsedSeconds: result.elapsed }
    } finally {
      connection.close()
    }
  }

  return {
    version,
    run,
    async close() {
      await drainPending()
      admin.close()
      await drainPending()
    },
  }
}

async function ensureWritable(dataDir: string): Promise<void> {
  try {
    await mkdir(dataDir, { recursive: true })
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw new Error(`The ClickHouse data directory ${dataDir} cannot be created or written.`, { cause })
  }
}

/** Server-wide limits count only on the first connection of the process, which lives as long as the engine. */
function openFirstConnection(dataDir: string, limits: EngineLimits): Session {
  try {
    return new Session(dataDir, {
      connectionArgs: [
        `--max_server_memory_usage=${limits.maxServerMemoryBytes}`,
        `--mark_cache_size=${limits.markCacheBytes}`,
        `--background_pool_size=${limits.backgroundPoolSize}`,
        ...(limits.configFile === undefined ? [] : [`--config-file=${limits.configFile}`]),
      ],
    })
  } catch (cause) {
    throw new Error(
      `The ClickHouse data directory ${dataDir} cannot be opened: one process at a time may use it, is another running?`,
      { cause },
    )
  }
}

/** `readonly` stands last in the one `SET`, because no setting can follow it. */
function toPrelude({ database, settings, parameters, readonly }: EngineStatement, token: string): string {
  const comment = settings.get('log_comment')
  // A server has no implicit SELECT; with it, a misspelled keyword would be an unknown column.
  const assignments = ['implicit_select = 0']
  for (const [name, value] of settings) {
    if (name !== 'log_comment') assignments.push(`${name} = ${quoteText(value)}`)
  }
  for (const [name, value] of parameters) assignments.push(`param_${name} = ${quoteText(value)}`)
  assignments.push(`log_comment = ${quoteText(comment === undefined ? token : `${token} ${comment}`)}`)
  if (readonly !== 0) assignments.push(`readonly = ${readonly}`)
  const use = database === 'default' ? '' : `USE ${quoteIdentifier(database)};\n`
  return `${use}SET ${assignments.join(', ')}`
}

/**
 * The engine has no way to interrupt a call, but it can kill by a mark in `log_comment`. The statement may not be
 * registered yet at the first attempt, hence the repetition until it has ended.
 */
async function stopOnAbort<T>(running: Promise<T>, signal: AbortSignal, kill: () => void): Promise<T> {
  let settled = false
  const killUntilSettled = async () => {
    while (!settled) {
      kill()
      await wait(20)
    }
  }
  let killing: Promise<void> | undefined
  const onAbort = () => {
    killing = killUntilSettled()
  }
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await running
  } finally {
    settled = true
    signal.removeEventListener('abort', onAbort)
    await killing
  }
}

/** Synchronous on purpose: it takes a millisecond and must not wait for a pool thread that the statement holds. */
function killStatement(admin: Session, token: string): void {
  admin.query(`KILL QUERY WHERE startsWith(Settings['log_comment'], ${quoteText(token)}) ASYNC`)
}

/** A ClickHouse string literal. */
export function quoteText(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`
}

function quoteIdentifier(name: string): string {
  return `\`${name.replace(/[\\`]/g, '\\$&')}\``
}
