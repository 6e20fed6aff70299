import { addAbortSignal, Readable } from 'node:stream'
import { type ClickHouseClient, ClickHouseError, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { z } from 'zod'
import type { Config } from '../config/config.ts'
import { DataError, toReason } from '../errors.ts'
import { inQuerySpan, type QueryTrace, type TracedStatement } from '../telemetry/spans.ts'
import { type ColumnTypes, toNative } from './native.ts'
import { CLUSTER_SETTINGS } from './topology.ts'

type Params = Readonly<Record<string, unknown>>

/** One statement: `name` is what metrics and logs call it, `params` fill the `{name: Type}` places of `sql`. */
export interface Statement {
  name: string
  /** Under which the server knows the statement; it runs no two at once under one id. A new one unless it is given. */
  id?: string
  sql: string
  params?: Params
  settings?: Readonly<Record<string, string | number>>
  /** Once it is aborted the statement ends, also when its answer has begun, and whoever reads that hears of it. */
  signal?: AbortSignal
}

/** The one door to ClickHouse; `createDatabase` opens it. Every method throws DataError `storage`. */
export interface Database {
  /** The database that statements run in. */
  readonly name: string
  /** The cluster that it is spread over; undefined for a single server. */
  readonly cluster: string | undefined
  /** How long the API waits for an answer to one request, in milliseconds (API_ANSWER_SECONDS). */
  readonly answerTimeoutMs: number
  /** The rows of a SELECT, each checked against `schema`. */
  rows<S extends z.ZodType>(statement: Statement & { schema: S }): Promise<z.output<S>[]>
  /**
   * The bytes that ClickHouse writes for a SELECT in `format` (default `JSONEachRow`), as a stream. One that `isLong`
   * may last for minutes, because a slow client reads it: it has a connection that no other statement waits for.
   */
  stream(statement: Statement & { format?: string; isLong?: boolean }): Promise<Readable>
  /** DDL and other statements without an answer. */
  command(statement: Statement): Promise<void>
  /**
   * Stores rows, which also have the members of `every`; when it resolves they are stored in the table and in every view
   * on it.
   */
  insert(insert: {
    table: string
    rows: readonly object[]
    every?: Readonly<Record<string, unknown>>
    settings?: Readonly<Record<string, string | number>>
    signal?: AbortSignal
  }): Promise<void>
  /** Stores rows that are text of `format` already; when it resolves they are stored as after `insert`. */
  load(rows: { table: string; columns: readonly string[]; format: string; data: Readable }): Promise<void>
  close(): Promise<void>
}

/** Most connections for statements that end as soon as the engine can. Further statements wait until one is free. */
const MAX_CONNECTIONS = 32
/**
 * Most connections for long streams: more than are ever open, so that none waits. Whoever opens streams bounds them.
 */
const MAX_LONG_CONNECTIONS = 256

/**
 * Times go in and come out as ISO 8601 UTC; an unknown member is a mistake, never dropped in silence. Partitions are made
 * from columns of the sorting key, so that rows which replace one another are in one partition: FINAL looks no further.
 * A failure midway is no row of the answer: it comes at the end, where it is found.
 */
const SETTINGS = {
  date_time_input_format: 'best_effort',
  date_time_output_format: 'iso',
  output_format_json_quote_64bit_integers: 0,
  input_format_skip_unknown_fields: 0,
  async_insert: 0,
  do_not_merge_across_partitions_select_final: 1,
  http_write_exception_in_output_format: 0,
} as const

/**
 * Names the engine's code where the engine told one. An error of the system is one of the connection. Anything else may be the
 * engine's own words without a code, as of a disk that is read-only.
 */
function toStorageError(name: string, url: string, error: unknown): DataError {
  const { host } = new URL(url)
  const isOfSystem = error instanceof Error && 'code' in error && typeof error.code === 'string'
  const where = isOfSystem ? `no answer from ${host}` : host
  const what = error instanceof ClickHouseError ? `code ${error.code} ${error.type ?? ''}` : where
  return new DataError('storage', `ClickHouse, ${name}: ${what}: ${toReason(error)}`, { cause: error })
}

/** ClickHouse's own number for what went wrong in a statement; undefined where it said none. */
export function toClickHouseCode(error: unknown): string | undefined {
  const cause = error instanceof DataError ? error.cause : error
  return cause instanceof ClickHouseError ? cause.code : undefined
}

/**
 * Refusals that pass, by ClickHouse's codes: overload and limits. 159 and 160: too slow; 201 and 202: too many queries;
 * 209, 210, 279: network; 32, 236, 394: a shard was killed, ends or ended the statement; 241: memory; 242: read-only table.
 */
const PASSING = new Set('32 159 160 201 202 209 210 236 241 242 279 394'.split(' '))

/**
 * Whether a statement failed because ClickHouse is away, or has no room for it at the moment: the same statement may do
 * later. An answer of an unexpected shape is a mistake of this program: it has no cause, and waiting does not help.
 */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof DataError) || error.code !== 'storage' || error.cause === undefined) return false
  const code = toClickHouseCode(error)
  return code === undefined || PASSING.has(code)
}

/** Runs a statement as one step of a trace; whatever fails comes out as a DataError. */
function guarded<T>(statement: TracedStatement, work: (trace: QueryTrace | undefined) => Promise<T>): Promise<T> {
  return inQuerySpan(statement, async (trace) => {
    try {
      return await work(trace)
    } catch (error) {
      throw error instanceof DataError ? error : toStorageError(statement.name, statement.url, error)
    }
  })
}

/** The client heeds a signal only until an answer's head is there. From then on `close` has to end the reading. */
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
 * The same for a stream. It may break off before anybody reads it: the listener keeps that from ending the process, and
 * whoever reads the stream later gets the error all the same.
 */
function endWith(signal: AbortSignal | undefined, stream: Readable): Readable {
  stream.on('error', () => {})
  return signal === undefined ? stream : addAbortSignal(signal, stream)
}

/** `OPTIMIZE` of `OPTIMIZE TABLE ...`. */
const toOperation = (sql: string) => /^\s*(\w+)/.exec(sql)?.[1]?.toUpperCase() ?? 'COMMAND'

/**
 * The connections of a database. `quick` is for statements that end as soon as the engine can, `long` for streams that
 * last as long as their readers take; it opens no connection before the first of them.
 */
function createClients(config: Config['clickhouse'], access: 'write' | 'read', database: string) {
  const settings = {
    url: config.url,
    username: access === 'write' ? config.user : config.readUser,
    password: access === 'write' ? config.password : config.readPassword,
    database,
    clickhouse_settings: config.cluster === undefined ? SETTINGS : { ...SETTINGS, ...CLUSTER_SETTINGS },
    request_timeout: 300_000,
    // Every failure is thrown to the caller, who logs it once with what it was doing.
    log: { level: ClickHouseLogLevel.OFF },
    keep_alive: { enabled: true },
  }
  const quick: ClickHouseClient = createClient({ ...settings, max_open_connections: MAX_CONNECTIONS })
  const long: ClickHouseClient = createClient({ ...settings, max_open_connections: MAX_LONG_CONNECTIONS })
  return { quick, long, close: async () => void (await Promise.all([quick.close(), long.close()])) }
}

/** What every request of the client says beside its statement. */
const toOptions = (trace: QueryTrace | undefined, settings?: Statement['settings'], signal?: AbortSignal) => ({
  ...(trace === undefined ? {} : { http_headers: trace.headers }),
  ...(settings === undefined ? {} : { clickhouse_settings: { ...settings } }),
  ...(signal === undefined ? {} : { abort_signal: signal }),
})

function toRequest({ id, sql, params, settings, signal }: Statement, trace: QueryTrace | undefined) {
  // The client never looks at a signal that is aborted already.
  signal?.throwIfAborted()
  const values = params === undefined ? {} : { query_params: { ...params } }
  return { query: sql, ...(id === undefined ? {} : { query_id: id }), ...values, ...toOptions(trace, settings, signal) }
}

/**
 * Reads the types of a table's columns once. They may become others while a process runs: what is sent is converted, and
 * a column that is not known is left to the engine.
 */
function openColumnTypes(client: ClickHouseClient): (table: string) => Promise<ColumnTypes> {
  const known = new Map<string, ColumnTypes>()
  return async (table) => {
    const found = known.get(table)
    if (found !== undefined) return found
    const query = 'SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = {table: String}'
    const result = await client.query({ query, query_params: { table }, format: 'JSONEachRow' })
    const types = new Map(
      columnType
        .array()
        .parse(await result.json())
        .map(({ name, type }) => [name, type]),
    )
    if (types.size > 0) known.set(table, types)
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
        return endWith(s.signal, result.stream as Readable)
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
