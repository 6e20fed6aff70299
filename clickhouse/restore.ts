import { parseArgs } from 'node:util'
import { loadConfig } from '../shared/config/config.ts'
import { DataError } from '../shared/errors.ts'
import { isMain, runProgram } from '../shared/process.ts'
import { createDatabase, type Database } from '../shared/store/clickhouse.ts'
import { countRows } from '../shared/store/count-rows.ts'
import { createLog, type Logger } from '../shared/telemetry/log.ts'
import { FORMAT, hashContent, listTables, type StoredTable } from './backup/content.ts'
import { checkFiles, type Manifest, openFile, readManifest, type TableFiles } from './backup/files.ts'
import { loadMigrations, migrate } from './migrate.ts'

const HELP = `npm run restore -- <folder> [options]

Puts a backup into the database that CLICKHOUSE_DATABASE names, which is made where it is missing and has to be empty.
Every file is checked before the first row is stored, every table is compared with the backup afterwards. Stop workers
and the scheduler first; docs/operations.md says what to do with the queues.

  --into-existing   stores the rows beside what is there; of two rows with one key the newer one stays. Also how a
                    restore that was stopped goes on
  --dry-run         checks the files, prints the tables and stores nothing
  --json
  --help`

export interface Restored {
  readonly name: string
  readonly rows: number
  /** Whether the table now holds exactly what the backup does. */
  readonly equal: boolean
}

interface RestoreOptions {
  readonly intoExisting: boolean
  readonly log: Logger
  readonly onTable: (table: Restored) => void
}

/**
 * Makes the schema and stores a backup's rows.
 * @throws DataError `config` for a folder without a backup, `migration` for one of a newer program, `storage` for damaged
 *   files, a database with rows, or a table that came out different.
 */
export async function restore(
  server: Database,
  db: Database,
  folder: string,
  { intoExisting, log, onTable }: RestoreOptions,
): Promise<Restored[]> {
  const told = await readManifest(folder)
  refuseNewer(told)
  await checkFiles(folder, told)
  await migrate(server, db, db.name, log)
  const tables = new Map((await listTables(db)).map((table) => [table.name, table]))
  if (!intoExisting) await refuseRows(db, [...tables.keys()])
  const restored: Restored[] = []
  for (const from of told.tables) {
    const table = tables.get(from.name)
    if (table === undefined) throw new DataError('migration', `${from.name} is in the backup and not in the schema`)
    const one = await loadTable(db, folder, table, from)
    restored.push(one)
    onTable(one)
  }
  const different = restored.filter(({ equal }) => !equal).map(({ name }) => name)
  if (different.length === 0 || intoExisting) return restored
  throw new DataError('storage', `these tables came out different from the backup: ${different.join(', ')}`)
}

async function loadTable(db: Database, folder: string, table: StoredTable, from: TableFiles): Promise<Restored> {
  const { columns } = from
  for (const { path } of from.files)
    await db.load({ table: from.name, columns, format: FORMAT, data: openFile(folder, path) })
  const equal = (await hashContent(db, { ...table, columns })) === from.sha256
  return { name: from.name, rows: from.rows, equal }
}

function refuseNewer({ migrations }: Manifest): void {
  const known = new Map(loadMigrations().map(({ name, checksum }) => [name, checksum]))
  const unknown = migrations.filter(({ name, checksum }) => known.get(name) !== checksum).map(({ name }) => name)
  if (unknown.length === 0) return
  throw new DataError('migration', `the backup is of a program with other migrations: ${unknown.join(', ')}`)
}

async function refuseRows(db: Database, tables: readonly string[]): Promise<void> {
  const filled: string[] = []
  for (const table of tables) if ((await countRows(db, table)) > 0) filled.push(table)
  if (filled.length === 0) return
  throw new DataError(
    'storage',
    `${db.name} is not empty (${filled.join(', ')}): name another CLICKHOUSE_DATABASE, or give --into-existing`,
  )
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      'into-existing': { type: 'boolean', default: false },
      'dry-run': { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const [folder, ...more] = positionals
  if (folder === undefined || more.length > 0) throw new DataError('payload', HELP)
  if (values['dry-run']) return check(folder, values.json)
  const config = loadConfig().clickhouse
  const server = createDatabase(config, 'write', { database: 'default' })
  const db = createDatabase(config, 'write')
  const restored = await restore(server, db, folder, {
    intoExisting: values['into-existing'],
    log: createLog('restore', 'warn'),
    onTable: ({ name, rows, equal }) => console.error(`${name}: ${rows} rows${equal ? '' : ', beside others'}`),
  })
  await Promise.all([server.close(), db.close()])
  const rows = restored.reduce((sum, table) => sum + table.rows, 0)
  if (values.json) console.log(JSON.stringify({ database: db.name, rows, tables: restored }, null, 2))
  else console.log(`${db.name}: ${rows} rows of ${restored.length} tables are stored and compared`)
}

async function check(folder: string, json: boolean): Promise<void> {
  const told = await readManifest(folder)
  refuseNewer(told)
  await checkFiles(folder, told)
  const tables = told.tables.map(({ name, rows }) => ({ name, rows }))
  if (json) console.log(JSON.stringify({ database: told.database, createdAt: told.createdAt, tables }, null, 2))
  else console.log(tables.map(({ name, rows }) => `${name}: ${rows} rows`).join('\n'))
}

if (isMain(import.meta.url)) runProgram(main)
