import { addAbortSignal, Readable } from 'node:stream'
import { type ClickHouseClient, ClickHouseError, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { z } from 'zod'
import type { Config } from '../config/config.ts'
import { DataError, toReason } from '../errors.ts'
import { inQuerySpan, type QueryTrace, type TracedStatement } from '../telemetry/spans.ts'
import { type ColumnTypes, toNative } from './native.ts'
import { CLUSTER_SETTINGS } from './topology.ts'

type Params = Readonly<Record<string, unknown>>

/** One statement. `name` is used in metrics and logs; `params` fill the `{name: Type}` placeholders of `sql`. */
export interface Statement {
  name: string
  /** Query id, random by default. The server never runs two statements with one id at the same time. */
  id?: string
  sql: string
  params?: Params
  settings?: Readonly<Record<string, string | number>>
  /** Aborts the statement, even while the response is being read; the reader then gets an error. */
  signal?: AbortSignal
}

/** The only access to ClickHouse, created by `createDatabase`. Every method throws DataError `storage`. */
export interface Database {
  /** The default database of statements. */
  readonly name: string
  /** The cluster of the database; undefined for a single server. */
  readonly cluster: string | undefined
  /** The API's time limit per request, in milliseconds (API_ANSWER_SECONDS). */
  readonly answerTimeoutMs: number
  /** The rows of a SELECT, each validated by `schema`. */
  rows<S extends z.ZodType>(statement: Statement & { schema: S }): Promise<z.output<S>[]>
  /**
   * The bytes of a SELECT in `format` (default `JSONEachRow`), as a stream. A stream that `isLong` may take minutes,
   * because a slow client reads it. Such a stream uses a separate connection, so that no other statement waits for it.
   * The stream also fails with DataError `storage`, whatever ends it early.
   */
  stream(statement: Statement & { format?: string; isLong?: boolean }): Promise<Readable>
  /** Runs DDL and other statements without a result. */
  command(statement: Statement): Promise<void>
  /**
   * Inserts rows, each with the members of `every`. Resolves when the rows are stored in the table and in all its
   * views.
   */
  insert(insert: {
    table: string
    rows: readonly object[]
    every?: Readonly<Record<string, unknown>>
    settings?: Readonly<Record<string, string | number>>
    signal?: AbortSignal
  }): Promise<void>
  /** Inserts rows that are already text of `format`. Resolves like `insert`. */
  load(rows: { table: string; columns: readonly string[]; format: string; data: Readable }): Promise<void>
  close(): Promise<void>
}

/** Connection limit for statements that run at the engine's speed. Further statements wait for a free connection. */
const MAX_CONNECTIONS = 32
/**
 * Connection limit for long streams. The limit is above the callers' own limits on open streams, so no stream waits.
 */
const MAX_LONG_CONNECTIONS = 256

/**
 * Times are ISO 8601 UTC in both directions. Unknown members are rejected, never dropped silently. All partition keys
 * are columns of the sorting key, so rows that replace one another share a partition and FINAL merges within partitions
 * only. A failure during the response does not appear as a row; it ends the response with an error.
 */
const SETTINGS = {
  date_time_input_format: 'best_effort',
  date_time_output_format: 'iso',
  output_format_json_quote_64bit_integers: 0,
  input_format_skip_unknown_fields: 0,
  async_insert: 0,
  do_not_merge_across_partitions_select_final: 1,
  // Older servers parse floats by a faster method that may miss the nearest one.
  precise_float_parsing: 1,
  http_write_exception_in_output_format: 0,
} as const

/**
 * Names the engine's error code if there is one. A system error concerns the connection. Any other error may be text of
 * the engine without a code, for example about a read-only disk.
 */
function toStorageError(name: string, url: string, error: unknown): DataError {
  const { host } = new URL(url)
  const isOfSystem = error instanceof Error && 'code' in error && typeof error.code === 'string'
  const where = isOfSystem ? `no answer from ${host}` : host
  const what = error instanceof ClickHouseError ? `code ${error.code} ${error.type ?? ''}` : where
  return new DataError('storage', `ClickHouse, ${name}: ${what}: ${toReason(error)}`, { cause: error })
}

/** ClickHouse's error code of a failed statement; undefined without one. */
export function toClickHouseCode(error: unknown): string | undefined {
  const cause = error instanceof DataError ? error.cause : error
  return cause instanceof ClickHouseError ? cause.code : undefined
}

/**
 * Temporary errors by ClickHouse's codes: overload and limits. 159 and 160: too slow; 201 and 202: too many queries;
 * 209, 210, 279: network; 32, 236, 394: a shard was killed, ends or ended the statement; 241: memory; 242: read-only
 * table.
 */
const TEMPORARY_CODES = new Set('32 159 160 201 202 209 210 236 241 242 279 394'.split(' '))

/**
 * Whether the same statement may succeed later, because ClickHouse is unreachable or overloaded. A result of an
 * unexpected shape is a bug of this program. Its error has no `cause`, and a retry does not help.
 */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof DataError) || error.code !== 'storage' || error.cause === undefined) return false
  const code = toClickHouseCode(error)
  return code === undefined || TEMPORARY_CODES.has(code)
}

/** Runs a statement as one step of a trace and wraps every failure in a DataError. */
function guarded<T>(statement: TracedStatement, work: (trace: QueryTrace | undefined) => Promise<T>): Promise<T> {
  return inQuerySpan(statement, async (trace) => {
    try {
      return await work(trace)
    } catch (error) {
      throw error instanceof DataError ? error : toStorageError(statement.name, statement.url, error)
    }
  })
}

/** The client obeys a signal only until the response header; after it, `close` ends the read. */
async function untilAborted<T>(signal: AbortSignal | undefined, reading: Promise<T>, close: () => void): Promise<T> {
  signal?.addEventListener('abort', close)
  if (signal?.aborted) close()
  try {
    return await reading
  } finally {
    signal?.removeEventListener('abort', close)
  }
}

/**
 * Makes a stream fail with `toError` of each failure, also if it is aborted or breaks off in the middle: all its readers
 * then get the same kind of error. The stream may fail before it has a reader: the empty listener prevents that the process
 * ends, and a later reader still gets the error.
 */
function failingWith(
  toError: (failure: Error) => DataError,
  signal: AbortSignal | undefined,
  stream: Readable,
): Readable {
  const destroy = stream.destroy.bind(stream)
  stream.destroy = (failure) => destroy(failure instanceof Error ? toError(failure) : failure)
  stream.on('error', () => {})
  return signal === undefined ? stream : addAbortSignal(signal, stream)
}

/** `OPTIMIZE` of `OPTIMIZE TABLE ...`. */
const toOperation = (sql: string) => /^\s*(\w+)/.exec(sql)?.[1]?.toUpperCase() ?? 'COMMAND'

/**
 * The connection pools of a database. `quick` is for statements that run at the engine's speed, `long` for streams that
 * run at the client's speed. Connections are opened on demand.
 */
function createClients(config: Config['clickhouse'], access: 'write' | 'read', database: string) {
  const settings = {
    url: config.url,
    username: access === 'write' ? config.user : config.readUser,
    password: access === 'write' ? config.password : config.readPassword,
    database,
    clickhouse_settings: config.cluster === undefined ? SETTINGS : { ...SETTINGS, ...CLUSTER_SETTINGS },
    // The time without a byte after which a statement fails. Readers have the time limit of an answer.
    request_timeout: access === 'write' ? 300_000 : config.answerTimeoutMs,
    // Callers receive every failure and log it once with its context.
    log: { level: ClickHouseLogLevel.OFF },
    keep_alive: { enabled: true },
    json: { parse: JSON.parse, stringify },
  }
  const quick: ClickHouseClient = createClient({ ...settings, max_open_connections: MAX_CONNECTIONS })
  const long: ClickHouseClient = createClient({
    ...{ ...settings, max_open_connections: MAX_LONG_CONNECTIONS },
    // A long stream pauses for as long as its reader.
    request_timeout: 300_000,
  })
  return { quick, long, close: async () => void (await Promise.all([quick.close(), long.close()])) }
}

/**
 * JSON as ClickHouse accepts it. ClickHouse rejects lone surrogates, and with them the whole insert. A lone surrogate
 * has no encoding in UTF-8, so it becomes the replacement character, as in the native format.
 */
function stringify(value: unknown): string {
  const text = JSON.stringify(value)
  if (!text.includes('\\ud')) return text
  // Escapes are matched one by one, because an escaped backslash may precede the letters.
  return text.replace(/\\(?:(ud[89a-f]..)|.)/g, (all, surrogate) => (surrogate === undefined ? all : '\ufffd'))
}

/** The options of every request: trace headers, settings, abort signal. */
const toOptions = (trace: QueryTrace | undefined, settings?: Statement['settings'], signal?: AbortSignal) => ({
  ...(trace === undefined ? {} : { http_headers: trace.headers }),
  ...(settings === undefined ? {} : { clickhouse_settings: { ...settings } }),
  ...(signal === undefined ? {} : { abort_signal: signal }),
})

function toRequest({ id, sql, params, settings, signal }: Statement, trace: QueryTrace | undefined) {
  // The client ignores a signal that is already aborted.
  signal?.throwIfAborted()
  const values = params === undefined ? {} : { query_params: { ...params } }
  return { query: sql, ...(id === undefined ? {} : { query_id: id }), ...values, ...toOptions(trace, settings, signal) }
}

/**
 * Reads the column types of a table once per process. A later change is harmless: the engine converts sent values, and
 * rows with an unknown column are sent as JSON.
 */
function openColumnTypes(client: ClickHouseClient): (table: string) => Promise<ColumnTypes> {
  const typesByTable = new Map<string, ColumnTypes>()
  return async (table) => {
    const found = typesByTable.get(table)
    if (found !== undefined) return found
    const query = 'SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = {table: String}'
    const result = await client.query({ query, query_params: { table }, format: 'JSONEachRow' })
    const types = new Map(
      columnType
        .array()
        .parse(await result.json())
        .map(({ name, type }) => [name, type]),
    )
    if (types.size > 0) typesByTable.set(table, types)
    return types
  }
}

const columnType = z.object({ name: z.string(), type: z.string() })

function parseRows<S extends z.ZodType>({ name, schema }: Statement & { schema: S }, rows: unknown[]): z.output<S>[] {
  const parsed = schema.array().safeParse(rows)
  if (parsed.success) return parsed.data as z.output<S>[]
  throw new DataError('storage', `ClickHouse, ${name}: an answer of an unexpected shape: ${parsed.error.message}`)
}

/** Opens a database for writing, or read-only as the API's user. The connection pool lives until `close`. */
export function createDatabase(
  config: Config['clickhouse'],
  access: 'write' | 'read',
  options: { database?: string } = {},
): Database {
  const database = options.database ?? config.database
  const { quick, long, close } = createClients(config, access, database)
  const where = { url: config.url, database }
  const traced = ({ name, sql, signal }: Statement, operation: string): TracedStatement => {
    return { name, operation, sql, signal, ...where }
  }
  const readTypes = openColumnTypes(quick)
  const load = async (into: string, format: string, values: Readable, options: ReturnType<typeof toOptions>) => {
    const { stream } = await quick.exec({ query: `INSERT INTO ${into} FORMAT ${format}`, values, ...options })
    for await (const _ of stream);
  }
  return {
    name: database,
    cluster: config.cluster,
    answerTimeoutMs: config.answerTimeoutMs,
    rows: (s) =>
      guarded(traced(s, 'SELECT'), async (trace) => {
        const result = await quick.query({ ...toRequest(s, trace), format: 'JSONEachRow' })
        const rows = await untilAborted(s.signal, result.json<unknown>(), () => result.close())
        trace?.rows(rows.length)
        return parseRows(s, rows)
      }),
    stream: (s) =>
      guarded(traced(s, 'SELECT'), async (trace) => {
        const query = `${s.sql}\nFORMAT ${s.format ?? 'JSONEachRow'}`
        const result = await (s.isLong ? long : quick).exec({ ...toRequest(s, trace), query })
        return failingWith(
          (failure) => toStorageError(s.name, config.url, failure),
          s.signal,
          result.stream as Readable,
        )
      }),
    command: (s) =>
      guarded(traced(s, toOperation(s.sql)), async (trace) => void (await quick.command(toRequest(s, trace)))),
    insert: ({ table, rows, every, settings, signal }) => {
      const name = `insert into ${table}`
      return guarded({ name, operation: 'INSERT', table, signal, ...where }, async (trace) => {
        const options = toOptions(trace, settings, signal)
        const block = toNative(await readTypes(table), rows, every)
        if (block !== undefined)
          return load(`${table} (${block.columns.join(', ')})`, 'Native', Readable.from([block.data]), options)
        const values = rows.map((row) => ({ ...row, ...every }))
        await quick.insert({ table, values, format: 'JSONEachRow', ...options })
      })
    },
    load: ({ table, columns, format, data }) => {
      const name = `load into ${table}`
      return guarded({ name, operation: 'INSERT', table, ...where }, async (trace) => {
        await load(`${table} (${columns.join(', ')})`, format, data, toOptions(trace))
      })
    },
    close,
  }
}

const clock = z.object({ now: z.int() })

/**
 * ClickHouse's time in Unix milliseconds. Comparing times of this one clock decides whether rows were stored before a
 * computation.
 */
export async function readEngineTime(db: Database): Promise<number> {
  const [row] = await db.rows({
    name: 'engine-time',
    sql: 'SELECT toUnixTimestamp64Milli(now64(3)) AS now',
    schema: clock,
  })
  return row?.now ?? 0
}

/** Wraps the database so that its statements end with the signal. After the abort no statement starts. */
export function withSignal(db: Database, signal: AbortSignal): Database {
  const bind = <S extends Pick<Statement, 'signal'>>(statement: S) => {
    signal.throwIfAborted()
    return { ...statement, signal: statement.signal ? AbortSignal.any([signal, statement.signal]) : signal }
  }
  return {
    ...db,
    rows: async (statement) => db.rows(bind(statement)),
    stream: async (statement) => db.stream(bind(statement)),
    command: async (statement) => db.command(bind(statement)),
    insert: async (rows) => db.insert(bind(rows)),
  }
}
