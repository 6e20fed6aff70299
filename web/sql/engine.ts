import { AsyncDuckDB, type AsyncDuckDBConnection, VoidLogger } from '@duckdb/duckdb-wasm'
import workerUrl from '@duckdb/duckdb-wasm/dist/duckdb-browser-eh.worker.js?url'
import engineUrl from '@duckdb/duckdb-wasm/dist/duckdb-eh.wasm?url'
import { toSize } from '../format.ts'
import { toAbsolute } from '../place.ts'
import type { ReadReply, ReadRequest } from './reader.ts'
import { type Cell, MOST_ROWS, type Result, toCell } from './result.ts'
import {
  type Catalog,
  type FileTable,
  findLimit,
  findNamed,
  findScans,
  isDescription,
  type PublishedDataset,
  type RowFilter,
  type Scan,
  selectFiles,
  toFileColumns,
  toGroups,
  toStatement,
  toTableStatement,
  toViewStatement,
} from './views.ts'

/** Memory of DuckDB's tables and queries. */
const MEMORY = '2GB'

/** Bytes of files that one query may load: their rows take about ten times as much memory. */
const MOST_BYTES = 150_000_000

/** Files that are read concurrently: more would wait for DuckDB, which inserts the rows of one at a time. */
const READERS = 2

/**
 * No extension and no other file is loaded. Two optimizers are off: statistics would remove the tables of files that are
 * not loaded yet from the plan, and late materialization would scan all rows and columns of a file. All settings are
 * final.
 */
const SETTINGS = [
  `SET memory_limit = '${MEMORY}'`,
  'SET autoload_known_extensions = false',
  'SET autoinstall_known_extensions = false',
  'SET enable_external_access = false',
  "SET disabled_optimizers = 'statistics_propagation,late_materialization'",
  'CREATE SCHEMA files',
  'SET lock_configuration = true',
]

export interface Engine {
  /**
   * Loads the files that the plan of a statement reads, then runs the statement. Loaded files are cached until the
   * engine is closed. Close the engine when the signal aborts: otherwise DuckDB continues to run, and the
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
  // The readers start while DuckDB is loaded.
  const readers = Array.from({ length: READERS }, createReader)
  try {
    await database.instantiate(engineUrl)
    await database.open({})
    const connection = await database.connect()
    for (const statement of SETTINGS) await connection.query(statement)
    return createEngine(catalog, database, connection, readers)
  } catch (error) {
    worker.terminate()
    for (const reader of readers) reader.close()
    throw error
  }
}

/** The loaded part of a file: columns, and the rows that satisfy one of the filters. */
interface Part extends Pick<Scan, 'columns' | 'filters'> {
  /** Number of rows from the start of the file; all of them if undefined. */
  readonly most: number | undefined
}

interface Load extends Part {
  readonly table: FileTable
}

function createEngine(
  catalog: Catalog,
  database: AsyncDuckDB,
  connection: AsyncDuckDBConnection,
  readers: readonly Reader[],
): Engine {
  const tables = new Map<string, FileTable>()
  /** The tables of each dataset's view. */
  const views = new Map<PublishedDataset, readonly FileTable[]>()
  const loaded = new Map<FileTable, Part>()
  /** Tables that may have rows. */
  const begun = new Set<FileTable>()
  let created = 0

  const createTable = (dataset: PublishedDataset, files: FileTable['files']): FileTable => {
    created += 1
    return { dataset, files, table: `published_${created}` }
  }

  /** Creates the tables that do not exist, and the view over all tables of the dataset. */
  async function define(dataset: PublishedDataset, all: readonly FileTable[]): Promise<void> {
    const added = all.filter(({ table }) => !tables.has(table))
    // One message to the worker: a dataset has hundreds of files.
    await connection.query([...added.map(toTableStatement), toViewStatement(dataset, all)].join(';\n'))
    for (const one of added) tables.set(one.table, one)
    views.set(dataset, all)
  }

  async function defineNamed(statement: string): Promise<void> {
    for (const dataset of findNamed(statement, catalog.datasets))
      if (!views.has(dataset))
        await define(
          dataset,
          toGroups(dataset).map((files) => createTable(dataset, files)),
        )
  }

  async function explain(statement: string): Promise<ReadonlyMap<string, Scan>> {
    const rows = (await connection.query(`EXPLAIN (FORMAT json) ${statement}`)).toArray()
    return findScans(rows.map((row: { explain_value?: unknown }) => String(row.explain_value)).join('\n'), tables)
  }

  /** Replaces tables of several files by tables of one file. */
  async function split(groups: ReadonlySet<FileTable>): Promise<void> {
    for (const [dataset, all] of [...views]) {
      if (!all.some((one) => groups.has(one))) continue
      const next = all.flatMap((one) =>
        groups.has(one) ? one.files.map((file) => createTable(dataset, [file])) : [one],
      )
      await define(dataset, next)
    }
  }

  /**
   * Finds the columns and rows of each file that a statement reads. Tables of several files that it reads are split. Of
   * files that only a `LIMIT` reads, some with enough rows are found, and the tables of the others are emptied.
   */
  async function findLoads(statement: string): Promise<Load[]> {
    const limit = findLimit(statement)
    for (;;) {
      const found = [...(await explain(statement))].flatMap(([name, scan]) => {
        const table = tables.get(name)
        return table === undefined ? [] : [{ ...scan, most: scan.isLimited ? limit : undefined, table }]
      })
      const limited = found.filter(({ most }) => most !== undefined)
      const ready = limited.find((one) => isLoaded(one) && one.table.files[0].rows >= (limit ?? 0))
      const candidates = (ready === undefined ? limited : [ready]).flatMap(({ table }) => table.files)
      const files = selectFiles(candidates, limit ?? 0)
      const isNeeded = ({ most, table }: Load) => most === undefined || table.files.some((file) => files.has(file))
      const needed = found.filter(isNeeded)
      const groups = needed.filter(({ table }) => table.files.length > 1)
      if (groups.length > 0) {
        await split(new Set(groups.map(({ table }) => table)))
        continue
      }
      // Tables that are not needed may hold rows of an earlier query without some columns, so they are emptied.
      for (const one of limited) if (!isNeeded(one) && !isLoaded(one)) await empty(one.table)
      return needed
    }
  }

  async function empty(table: FileTable): Promise<void> {
    loaded.delete(table)
    if (begun.delete(table)) await connection.query(`TRUNCATE files.${table.table}`)
  }

  const isLoaded = ({ table, columns, filters, most }: Load) => {
    const present = loaded.get(table)
    if (present === undefined || ![...columns].every((column) => present.columns.has(column))) return false
    if (present.most !== undefined && (most === undefined || most > present.most)) return false
    return present.filters === undefined || toKey(present.filters) === toKey(filters)
  }

  const toRequest = ({ table: { dataset, files }, columns, filters, most }: Load): Omit<ReadRequest, 'isOnlySize'> => ({
    ...{ url: toAbsolute(`published/${files[0].path}`), bytes: files[0].bytes, filters, most },
    columns: toFileColumns(dataset).map((column) => ({ ...column, isNeeded: columns.has(column.name) })),
  })

  async function load(one: Load, reader: Reader, signal: AbortSignal): Promise<void> {
    const { table } = one.table
    // Removes other rows, rows with fewer columns, and those that an aborted load has inserted.
    await empty(one.table)
    begun.add(one.table)
    for await (const reply of reader.read({ ...toRequest(one), isOnlySize: false }, signal)) {
      if (!('arrow' in reply)) continue
      await connection.insertArrowFromIPCStream(reply.arrow, { schema: 'files', name: table, create: false })
      signal.throwIfAborted()
    }
    loaded.set(one.table, one)
  }

  /** Calls `work` for each file; each reader has one file at a time. */
  async function readEach(loads: readonly Load[], work: (one: Load, reader: Reader, at: number) => Promise<void>) {
    const queue = loads.entries()
    const workOn = async (reader: Reader) => {
      for (const [at, one] of queue) await work(one, reader, at)
    }
    await Promise.all(readers.map(workOn))
  }

  /** Bytes of the needed rows and columns: an upper bound if it is small, or else as the footers of the files have them. */
  async function measure(loads: readonly Load[], signal: AbortSignal, onStep: (step: string) => void): Promise<number> {
    const whole = loads.reduce((sum, { table }) => sum + table.files[0].bytes, 0)
    if (whole <= MOST_BYTES) return whole
    let bytes = 0
    await readEach(loads, async (one, reader, at) => {
      onStep(`Measuring file ${at + 1} of ${loads.length}`)
      signal.throwIfAborted()
      for await (const reply of reader.read({ ...toRequest(one), isOnlySize: true }, signal))
        if ('size' in reply) bytes += reply.size
    })
    return bytes
  }

  async function loadMissing(statement: string, signal: AbortSignal, onStep: (step: string) => void): Promise<void> {
    // A table that lacks columns is loaded again, with those that it has.
    const missing = (await findLoads(statement))
      .filter((one) => !isLoaded(one))
      .map((one) => ({ ...one, columns: new Set([...one.columns, ...(loaded.get(one.table)?.columns ?? [])]) }))
    const bytes = await measure(missing, signal, onStep)
    if (bytes > MOST_BYTES)
      throw new Error(
        `The query needs ${toSize(bytes)} of ${missing.length} files, and at most ${toSize(MOST_BYTES)} are loaded for one query. Add conditions on interval, year, month or the time column, select fewer columns, or select one token or DAO.`,
      )
    await readEach(missing, async (one, reader, at) => {
      onStep(`Loading file ${at + 1} of ${missing.length}, at most ${toSize(bytes)}`)
      signal.throwIfAborted()
      await load(one, reader, signal)
    })
  }

  return {
    run: async (text, { signal, onStep }) => {
      const statement = toStatement(text)
      await defineNamed(statement)
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

type RowsReply = Exclude<ReadReply, { failure: string } | { isEnd: true }>

const toKey = (filters: readonly RowFilter[] | undefined) => JSON.stringify(filters)

interface Reader {
  /** The rows of a file, or their size. One file is read at a time. */
  read(request: ReadRequest, signal: AbortSignal): AsyncGenerator<RowsReply>
  close(): void
}

/** Reads files in a worker. After an abort or a failure the next file gets a new one. */
function createReader(): Reader {
  const startWorker = () => new Worker(new URL('./reader.ts', import.meta.url), { type: 'module' })
  let worker: Worker | undefined = startWorker()
  const close = () => {
    worker?.terminate()
    worker = undefined
  }
  async function* read(request: ReadRequest, signal: AbortSignal): AsyncGenerator<RowsReply> {
    worker ??= startWorker()
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
        yield reply
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
