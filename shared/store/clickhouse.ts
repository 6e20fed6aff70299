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
   * The bytes that ClickHouse writes for a SELECT in `format` (default `JSONEachRow`), as a stream. One that `isLong`
   * may last for minutes, because a slow client reads it: it has a connection that no other statement waits for.
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

/** Most connections for statements that end as soon as the engine can. Further statements wait until one is free. */
const MAX_CONNECTIONS = 32
/**
 * Most connections for long streams: more than are ever open, so that none waits. Whoever opens streams bounds them.
 */
const MAX_LONG_CONNECTIONS = 256

/**
 * Times go in and come out as ISO 8601 UTC; an unknown member is a mistake, never dropped in silence. Partitions are made
 * from columns of the sorting key, so that rows which replace one another are in one partition: FINAL looks no further.
 */
const SETTINGS = {
  date_time_input_format: 'best_effort',
  date_time_output_format: 'iso',
  output_format_json_quote_64bit_integers: 0,
  input_format_skip_unknown_fields: 0,
  async_insert: 0,
  do_not_merge_across_partitions_select_final: 1,
} as const

/** A failure that the engine told has its code in the message; any other is one of the connection. */
function toStorageError(name: string, url: string, error: unknown): DataError {
  const what =
    error instanceof ClickHouseError ? `code ${error.code} ${error.type ?? ''}` : `no answer from ${new URL(url).host}`
  return new DataError('storage', `ClickHouse, ${name}: ${what}: ${toReason(error)}`, { cause: error })
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

function toRequest({ sql, params, settings, signal }: Statement, trace: QueryTrace | undefined) {
  // The client never looks at a signal that is aborted already.
  signal?.throwIfAborted()
  const values = params === undefined ? {} : { query_params: { ...params } }
  return { query: sql, ...values, ...toOptions(trace, settings, signal) }
}

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
  return {
    name: database,
    cluster: config.cluster,
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
    insert: ({ table, rows, settings, signal }) => {
      const name = `insert into ${table}`
      return guarded({ name, operation: 'INSERT', table, signal, ...where }, async (trace) => {
        const values = { table, values: [...rows], format: 'JSONEachRow' } as const
        await quick.insert({ ...values, ...toOptions(trace, settings, signal) })
      })
    },
    load: ({ table, columns, format, data }) => {
      const name = `load into ${table}`
      return guarded({ name, operation: 'INSERT', table, ...where }, async (trace) => {
        const query = `INSERT INTO ${table} (${columns.join(', ')}) FORMAT ${format}`
        const { stream } = await quick.exec({ query, values: data, ...toOptions(trace) })
        for await (const _ of stream);
      })
    },
    close,
  }
}
