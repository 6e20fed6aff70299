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
  findScanned,
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
  const loaded = new Set<string>()

  async function define(statement: string): Promise<void> {
    for (const dataset of findNamed(statement, catalog.datasets)) {
      if (defined.has(dataset.name)) continue
      const { tables: own, statements } = toDefinition(dataset, tables.size)
      for (const one of own) tables.set(one.table, one)
      for (const one of statements) await connection.query(one)
      defined.add(dataset.name)
    }
  }

  async function findMissing(statement: string): Promise<FileTable[]> {
    const rows = (await connection.query(`EXPLAIN (FORMAT json) ${statement}`)).toArray()
    const plan = rows.map((row: { explain_value?: unknown }) => String(row.explain_value)).join('\n')
    return [...findScanned(plan)].filter((table) => !loaded.has(table)).flatMap((table) => tables.get(table) ?? [])
  }

  async function load({ file, table, columns }: FileTable, signal: AbortSignal): Promise<void> {
    // Removes the rows that an aborted load has inserted.
    await connection.query(`TRUNCATE files.${table}`)
    for await (const arrow of readFile({ url: toAbsolute(`published/${file.path}`), columns }, signal)) {
      await connection.insertArrowFromIPCStream(arrow, { schema: 'files', name: table, create: false })
      signal.throwIfAborted()
    }
    loaded.add(table)
  }

  async function loadMissing(statement: string, signal: AbortSignal, onStep: (step: string) => void): Promise<void> {
    const missing = await findMissing(statement)
    const bytes = missing.reduce((sum, { file }) => sum + file.bytes, 0)
    if (bytes > MOST_BYTES)
      throw new Error(
        `The query needs ${missing.length} more files with ${toSize(bytes)}, and at most ${toSize(MOST_BYTES)} are loaded for one query. Add conditions on interval, year, month or the time column.`,
      )
    for (const [at, one] of missing.entries()) {
      onStep(`Loading file ${at + 1} of ${missing.length}, ${toSize(bytes)} in all`)
      signal.throwIfAborted()
      await load(one, signal)
    }
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
    close: () => database.terminate(),
  }
}

/** The rows of a file as Arrow streams. */
async function* readFile(request: ReadRequest, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const worker = new Worker(new URL('./reader.ts', import.meta.url), { type: 'module' })
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
      if ('isEnd' in reply) return
      yield reply.arrow
    }
  } finally {
    signal.removeEventListener('abort', abort)
    worker.terminate()
  }
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
