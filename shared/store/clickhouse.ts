import { addAbortSignal, type Readable } from 'node:stream'
import { type ClickHouseClient, ClickHouseError, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import type { z } from 'zod'
import type { Config } from '../config/config.ts'
import { DataError, toReason } from '../errors.ts'
import { inQuerySpan, type QueryTrace, type TracedStatement } from '../telemetry/query-span.ts'
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
  /** The rows of a SELECT, each checked against `schema`. */
  rows<S extends z.ZodType>(statement: Statement & { schema: S }): Promise<z.output<S>[]>
  /**
   * The bytes that ClickHouse writes for a SELECT in `format` (default `JSONEachRow`), as a stream. One that `isLong` lasts
   * as long as somebody far away takes to read it: it has a connection that no other statement waits for.
   */
  stream(statement: Statement & { format?: string; isLong?: boolean }): Promise<Readable>
  /** DDL and other statements without an answer. */
  command(statement: Statement): Promise<void>
  /** Stores rows; when it resolves they are stored in the table and in every view on it. */
  insert(insert: {
    table: string
    rows: readonly object[]
    settings?: Readonly<Record<string, string | number>>
    signal?: AbortSignal
  }): Promise<void>
  /** Stores rows that are text of `format` already; when it resolves they are stored as after `insert`. */
  load(rows: { table: string; columns: readonly string[]; format: string; data: Readable }): Promise<void>
  close(): Promise<void>
}

/** Of all statements that end as soon as the engine can; more wait here, each until one of these has ended. */
const MAX_CONNECTIONS = 32
/** Of long streams: more than anybody opens, so that none ever waits. Whoever opens them for clients bounds them. */
const MAX_LONG_CONNECTIONS = 256

/** Times go in and come out as ISO 8601 UTC; an unknown member is a mistake, never dropped in silence. */
const SETTINGS = {
  date_time_input_format: 'best_effort',
  date_time_output_format: 'iso',
  output_format_json_quote_64bit_integers: 0,
  input_format_skip_unknown_fields: 0,
  async_insert: 0,
} as const

/** Told apart by what helps: an engine's own word names its code, anything else is the connection. */
function toStorageError(name: string, url: string, error: unknown): DataError {
  const what =
    error instanceof ClickHouseError ? `code ${error.code} ${error.type ?? ''}` : `no answer from ${new URL(url).host}`
  return new DataError('storage', `ClickHouse, ${name}: ${what}: ${toReason(error)}`, { cause: error })
}

/** ClickHouse's own number for what went wrong in a statement; undefined where it said none. */
export function toClickHouseCode(error: unknown): string | undefined {
  const cause = error instanceof DataError ? error.cause : error
  return cause instanceof ClickHouseError ? cause.code : undefined
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

/** The client heeds a signal up to the head of an answer; its body is read to the end unless somebody closes it. */
async function untilAborted<T>(signal: AbortSignal | undefined, reading: Promise<T>, close: () => void): Promise<T> {
  signal?.addEventListener('abort', close)
  if (signal?.aborted) close()
  try {
    return await reading
  } finally {
    signal?.removeEventListener('abort', close)
  }
}

/** The same for a stream. It may break off before anybody reads it: who reads it later hears of it all the same. */
function endWith(signal: AbortSignal | undefined, stream: Readable): Readable {
  stream.on('error', () => {})
  return signal === undefined ? stream : addAbortSignal(signal, stream)
}

/** `OPTIMIZE` of `OPTIMIZE TABLE ...`. */
const toOperation = (sql: string) => /^\s*(\w+)/.exec(sql)?.[1]?.toUpperCase() ?? 'COMMAND'

/** Opens a database for writing, or read-only as the API's user. The connection pool lives until `close`. */
export function createDatabase(
  config: Config['clickhouse'],
  access: 'write' | 'read',
  options: { database?: string } = {},
): Database {
  const database = options.database ?? config.database
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
  const client: ClickHouseClient = createClient({ ...settings, max_open_connections: MAX_CONNECTIONS })
  // It opens no connection before the first long stream.
  const longClient: ClickHouseClient = createClient({ ...settings, max_open_connections: MAX_LONG_CONNECTIONS })
  const common = (s: Statement, trace: QueryTrace | undefined) => {
    // The client never looks at a signal that is aborted already.
    s.signal?.throwIfAborted()
    return toRequest(s, trace)
  }
  const toRequest = (s: Statement, trace: QueryTrace | undefined) => ({
    query: s.sql,
    ...(s.id === undefined ? {} : { query_id: s.id }),
    ...(trace === undefined ? {} : { http_headers: trace.headers }),
    ...(s.params === undefined ? {} : { query_params: { ...s.params } }),
    ...(s.settings === undefined ? {} : { clickhouse_settings: { ...s.settings } }),
    ...(s.signal === undefined ? {} : { abort_signal: s.signal }),
  })
  const traced = ({ name, sql, signal }: Statement, operation: string): TracedStatement => {
    return { name, operation, sql, signal, url: config.url, database }
  }
  return {
    name: database,
    cluster: config.cluster,
    rows: (s) =>
      guarded(traced(s, 'SELECT'), async (trace) => {
        const result = await client.query({ ...common(s, trace), format: 'JSONEachRow' })
        const rows = await untilAborted(s.signal, result.json<unknown>(), () => result.close())
        trace?.rows(rows.length)
        const parsed = s.schema.array().safeParse(rows)
        if (parsed.success) return parsed.data as z.output<typeof s.schema>[]
        throw new DataError(
          'storage',
          `ClickHouse, ${s.name}: an answer of an unexpected shape: ${parsed.error.message}`,
        )
      }),
    stream: (s) =>
      guarded(traced(s, 'SELECT'), async (trace) => {
        const statement = common(s, trace)
        const query = `${s.sql}\nFORMAT ${s.format ?? 'JSONEachRow'}`
        const result = await (s.isLong ? longClient : client).exec({ ...statement, query })
        return endWith(s.signal, result.stream as Readable)
      }),
    command: (s) =>
      guarded(traced(s, toOperation(s.sql)), async (trace) => void (await client.command(common(s, trace)))),
    insert: ({ table, rows, settings, signal }) => {
      const name = `insert into ${table}`
      return guarded({ name, operation: 'INSERT', table, signal, url: config.url, database }, async (trace) => {
        await client.insert({
          table,
          values: [...rows],
          format: 'JSONEachRow',
          ...(trace === undefined ? {} : { http_headers: trace.headers }),
          ...(settings === undefined ? {} : { clickhouse_settings: { ...settings } }),
          ...(signal === undefined ? {} : { abort_signal: signal }),
        })
      })
    },
    load: ({ table, columns, format, data }) => {
      const name = `load into ${table}`
      return guarded({ name, operation: 'INSERT', table, url: config.url, database }, async (trace) => {
        const query = `INSERT INTO ${table} (${columns.join(', ')}) FORMAT ${format}`
        const http = trace === undefined ? {} : { http_headers: trace.headers }
        const { stream } = await client.exec({ query, values: data, ...http })
        for await (const _ of stream);
      })
    },
    close: async () => void (await Promise.all([client.close(), longClient.close()])),
  }
}
