import { runCommand } from '../shared/command.ts'
import { readCommandLine } from '../shared/command-line.ts'
import { loadCommandConfig } from '../shared/config/config.ts'
import { DataError } from '../shared/errors.ts'
import { isMain } from '../shared/process.ts'
import { countRows, createDatabase, type Database } from '../shared/store/store.ts'
import { listTables, readContent } from './backup/content.ts'
import { type Manifest, makeFolder, type TableFiles, writeManifest, writeTable } from './backup/files.ts'
import { requireMigrated } from './migrations.ts'

const HELP = `npm run backup -- <folder> [options]

Copies every table of the database into a folder, as compressed text with a checksum per file, while workers and readers
continue. npm run restore restores the backup on any ClickHouse: a server or a cluster of any size.

  --without-raw-answers   omits the stored answers of providers (RAW_ANSWERS_DAYS); rows and corrections are copied
  --dry-run               prints the tables and their rows and writes nothing
  --json
  --help`

/** The tables of providers' answers. */
const RAW_TABLES: readonly string[] = ['raw_answers', 'raw_runs']

/**
 * Copies a database without the `omitted` tables into a folder, which is created if missing. Calls `onTable` after each table. Each table is copied
 * as of one time, and the order of the tables keeps the copy consistent (see `listTables`).
 * @throws DataError `config` if the folder is not empty, `migration`, `schema_too_old` or `storage`.
 */
export async function backUp(
  db: Database,
  folder: string,
  onTable: (table: TableFiles) => void | Promise<void>,
  omitted: readonly string[] = [],
): Promise<Manifest> {
  const { applied } = await requireMigrated(db)
  await makeFolder(folder)
  const createdAt = new Date().toISOString()
  const migrations = [...applied].map(([name, checksum]) => ({ name, checksum }))
  const tables: TableFiles[] = []
  for (const table of await listTables(db)) {
    if (omitted.includes(table.name)) continue
    const written = await writeTable(folder, table.name, table.columns, await readContent(db, table))
    tables.push(written)
    await onTable(written)
  }
  const manifest: Manifest = { version: 1, createdAt, database: db.name, migrations, tables }
  await writeManifest(folder, manifest)
  return manifest
}

async function main(): Promise<void> {
  const { values, positionals } = readCommandLine({
    allowPositionals: true,
    options: {
      'without-raw-answers': { type: 'boolean', default: false },
      'dry-run': { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const [folder, ...more] = positionals
  if (folder === undefined || more.length > 0) throw new DataError('payload', HELP)
  const omitted = values['without-raw-answers'] ? RAW_TABLES : []
  const db = createDatabase(loadCommandConfig().clickhouse, 'write')
  if (values['dry-run']) {
    const tables: { name: string; rows: number }[] = []
    for (const { name } of await listTables(db))
      if (!omitted.includes(name)) tables.push({ name, rows: await countRows(db, name) })
    console.log(values.json ? JSON.stringify(tables, null, 2) : tables.map(toLine).join('\n'))
  } else {
    const result = await backUp(db, folder, (table) => console.error(toLine(table)), omitted)
    const rows = result.tables.reduce((sum, table) => sum + table.rows, 0)
    if (values.json) console.log(JSON.stringify({ folder, rows, tables: result.tables.length }, null, 2))
    else console.log(`${folder}: ${rows} rows of ${result.tables.length} tables`)
  }
  await db.close()
}

const toLine = ({ name, rows }: { name: string; rows: number }): string => `${name}: ${rows} rows`

if (isMain(import.meta.url)) runCommand(main)
