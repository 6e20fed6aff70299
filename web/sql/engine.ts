import { AsyncDuckDB, type AsyncDuckDBConnection, VoidLogger } from '@duckdb/duckdb-wasm'
import workerUrl from '@duckdb/duckdb-wasm/dist/duckdb-browser-eh.worker.js?url'
import engineUrl from '@duckdb/duckdb-wasm/dist/duckdb-eh.wasm?url'
import { toAbsolute } from '../place.ts'
import type { ReadReply, ReadRequest } from './reader.ts'
import { type Cell, type Result, toCell } from './result.ts'
import {
  type Catalog,
  type FileTable,
  findNamed,
  findScans,
  isDescription,
  toDefinition,
  toStatement,
} from './views.ts'

/** Memory of DuckDB's tables and queries. */
const MEMORY = '2GB'

/** Rows that are read from a result; the table shows fewer. */
export const MOST_ROWS = 100_000

/** Files that one query may load: their rows take about ten times as much memory. */
const MOST_BYTES = 150_000_000

export const toSize = (bytes: number) =>
  bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`

/** Files that are read concurrently: more would wait for DuckDB, which inserts the rows of one at a time. */
const READERS = 2

/**
 * No extension and no other file is loaded. The optimizer for statistics is off because it would remove the tables of
 * files that are not loaded yet from the plan. All settings are final.
 */
const SETTINGS = [
  `SET memory_limit = '${MEMORY}'`,
  'SET autoload_known_extensions = false',
  'SET autoinstall_known_extensions = false',
  'SET enable_external_access = false',
  "SET disabled_optimizers = 'statistics_propagation'",
  'CREATE SCHEMA files',
  'SET lock_configuration = true',
]

export interface Engine {
  /**
   * Loads the files that the plan of a statement reads, then runs the statement. Loaded files are cached until the
   * engine is closed. After the signal has aborted, close the engine: otherwise DuckDB continues to run, and the
   * promise may never settle.
   * @throws Error with DuckDB's message
   */
  run(text: string, options: { signal: AbortSignal; onStep: (step: string) => void }): Promise<Result>
  close(): Promise<void>
}

/** Starts DuckDB in a worker, over the files of a catalog. */
export async function startEngine(catalog: Catalog): Promise<Engine> {
  const worker = new Worker(workerUrl)
  const database = new AsyncDuckDB(new VoidLogger(), worker)
  try {
    await database.instantiate(engineUrl)
    await database.open({})
    const connection = await database.connect()
    for (const statement of SETTINGS) await connection.query(statement)
    return createEngine(catalog, database, connection)
  } catch (error) {
    worker.terminate()
    throw error
  }
}

function createEngine(catalog: Catalog, database: AsyncDuckDB, connection: AsyncDuckDBConnection): Engine {
  const tables = new Map<string, FileTable>()
  const defined = new Set<string>()
  /** The columns of each table that have the values of the file. The others are null. */
  const loaded = new Map<string, ReadonlySet<string>>()
  const readers = Array.from({ length: READERS }, createReader)

  async function define(statement: string): Promise<void> {
    for (const dataset of findNamed(statement, catalog.datasets)) {
      if (defined.has(dataset.name)) continue
      const { tables: own, statements } = toDefinition(dataset, tables.size)
      for (const one of own) tables.set(one.table, one)
      // One message to the worker: a dataset has hundreds of files.
      await connection.query(statements.join(';\n'))
      defined.add(dataset.name)
    }
  }

  /** The tables that a statement reads and that lack columns for it, with all columns that they need. */
  async function findMissing(statement: string): Promise<FileTable[]> {
    const rows = (await connection.query(`EXPLAIN (FORMAT json) ${statement}`)).toArray()
    const plan = rows.map((row: { explain_value?: unknown }) => String(row.explain_value)).join('\n')
    return [...findScans(plan, tables)].flatMap(([name, needed]) => {
      const [table, present] = [tables.get(name), loaded.get(name)]
      if (table === undefined || [...needed].every((column) => present?.has(column))) return []
      return {
        ...table,
        columns: table.columns.filter((column) => needed.has(column.name) || present?.has(column.name)),
      }
    })
  }

  async function load({ file, table, columns }: FileTable, reader: Reader, signal: AbortSignal): Promise<void> {
    // Removes the rows with fewer columns, and those that an aborted load has inserted.
    loaded.delete(table)
    await connection.query(`TRUNCATE files.${table}`)
    // Arrow is inserted by position into all columns, so some of the columns need a table of their own.
    const incoming = `incoming_${table}`
    for await (const arrow of reader.read({ url: toAbsolute(`published/${file.path}`), columns }, signal)) {
      await connection.insertArrowFromIPCStream(arrow, { schema: 'files', name: incoming, create: true })
      await connection.query(`INSERT INTO files.${table} BY NAME SELECT * FROM files.${incoming}`)
      await connection.query(`DROP TABLE files.${incoming}`)
      signal.throwIfAborted()
    }
    loaded.set(table, new Set(columns.map(({ name }) => name)))
  }

  async function loadMissing(statement: string, signal: AbortSignal, onStep: (step: string) => void): Promise<void> {
    const missing = await findMissing(statement)
    const bytes = missing.reduce((sum, { file }) => sum + file.bytes, 0)
    if (bytes > MOST_BYTES)
      throw new Error(
        `The query needs ${missing.length} more files with ${toSize(bytes)}, and at most ${toSize(MOST_BYTES)} are loaded for one query. Add conditions on interval, year, month or the time column.`,
      )
    const queue = missing.entries()
    const loadOn = async (reader: Reader) => {
      for (const [at, one] of queue) {
        onStep(`Loading file ${at + 1} of ${missing.length}, ${toSize(bytes)} in all`)
        signal.throwIfAborted()
        await load(one, reader, signal)
      }
    }
    await Promise.all(readers.map(loadOn))
  }

  return {
    run: async (text, { signal, onStep }) => {
      const statement = toStatement(text)
      await define(statement)
      if (!isDescription(statement)) await loadMissing(statement, signal, onStep)
      signal.throwIfAborted()
      onStep('Running')
      return readResult(connection, statement)
    },
    close: () => {
      for (const reader of readers) reader.close()
      return database.terminate()
    },
  }
}

interface Reader {
  /** The rows of a file as Arrow streams. One file is read at a time. */
  read(request: ReadRequest, signal: AbortSignal): AsyncGenerator<Uint8Array>
  close(): void
}

/** Reads files in a worker, which starts with the first file. After an abort or a failure the next file gets a new one. */
function createReader(): Reader {
  let worker: Worker | undefined
  const close = () => {
    worker?.terminate()
    worker = undefined
  }
  async function* read(request: ReadRequest, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    worker ??= new Worker(new URL('./reader.ts', import.meta.url), { type: 'module' })
    const replies: ReadReply[] = []
    let wake = () => {}
    const add = (reply: ReadReply) => {
      replies.push(reply)
      wake()
    }
    const abort = () => add({ failure: 'The query was cancelled.' })
    worker.onmessage = ({ data }: MessageEvent<ReadReply>) => add(data)
    worker.onerror = ({ message }) => add({ failure: `The reader of files failed: ${message}` })
    signal.addEventListener('abort', abort)
    worker.postMessage(request)
    let isWhole = false
    try {
      for (;;) {
        const reply = replies.shift()
        if (reply === undefined) {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
          continue
        }
        signal.throwIfAborted()
        if ('failure' in reply) throw new Error(reply.failure)
        if ('isEnd' in reply) {
          isWhole = true
          return
        }
        yield reply.arrow
      }
    } finally {
      signal.removeEventListener('abort', abort)
      if (!isWhole) close()
    }
  }
  return { read, close }
}

async function readResult(connection: AsyncDuckDBConnection, statement: string): Promise<Result> {
  const startedAt = performance.now()
  const reader = await connection.send(statement, true)
  await reader.open()
  // The reader forgets its schema at the end.
  const { fields } = reader.schema
  const rows: Cell[][] = []
  let isCut = false
  for await (const batch of reader) {
    const vectors = fields.map((_, at) => batch.getChildAt(at))
    for (let row = 0; row < batch.numRows && !isCut; row += 1) {
      isCut = rows.length === MOST_ROWS
      if (!isCut) rows.push(fields.map(({ type }, at) => toCell(vectors[at]?.get(row), type)))
    }
    if (isCut) break
  }
  if (isCut) await connection.cancelSent()
  const columns = fields.map(({ name, type }) => ({ name, type: String(type) }))
  return { columns, rows, isCut, milliseconds: performance.now() - startedAt }
}
