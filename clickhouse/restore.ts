import { runCommand } from '../shared/command.ts'
import { readCommandLine } from '../shared/command-line.ts'
import { loadCommandConfig } from '../shared/config/config.ts'
import { DataError } from '../shared/errors.ts'
import { isMain } from '../shared/process.ts'
import { createParts, type OnPart } from '../shared/progress-bar.ts'
import { countRows, createDatabase, type Database, type Lock, withLock } from '../shared/store/store.ts'
import { createLog, type Logger } from '../shared/telemetry/log.ts'
import { FORMAT, hashContent, keepingOld, listTables, type StoredTable } from './backup/content.ts'
import { checkFiles, type Manifest, openFile, readManifest, type TableFiles, toBackupId } from './backup/files.ts'
import { refuseLater, type SchemaOf, toSchemaOf } from './backup/schema-of.ts'
import { applyMissing, createMissing } from './migrations.ts'
import { endRestoring, markRestoring, type Restoring } from './schema/restoring.ts'
import { readSchema } from './schema/stored.ts'

const HELP = `npm run restore -- <folder> [options]

Restores a backup into the database CLICKHOUSE_DATABASE, which is created if missing and must be empty. Verifies every file
before the first row is stored, and compares every table with the backup afterwards. A backup of an older version is
stored as it was, and then upgraded. The same command continues an interrupted restore. Stop all processes that use the
database first; docs/operations.md explains how to return to a backup beside a running system.

  --into-existing   adds the rows to existing ones; of two rows with one key the newer one wins
  --dry-run         checks the files, prints the tables and stores nothing
  --json
  --help`

export interface Restored {
  readonly name: string
  readonly rows: number
  /** Whether the table equalled the backup, before any later migration. */
  readonly equal: boolean
}

interface RestoreOptions {
  readonly intoExisting: boolean
  readonly log: Logger
  readonly onTable: (table: Restored) => void
  /** Called after each verified file, before the first row is stored. */
  readonly onChecked?: OnPart
  /** Called if this run continues an interrupted restore of the same backup. */
  readonly onTakenUp?: () => void
  /** The folder of the migrations; tests may set another one. */
  readonly migrations?: string
}

/**
 * Creates the schema of a backup, stores its rows, and then applies every later migration. Continues an interrupted
 * restore.
 * @throws DataError `config` for a folder without a backup, `schema_too_old` for a backup from before the first
 * release, `migration` for a backup of a newer program or older than the database, `storage` for damaged files, a
 * database with rows, a concurrent restore, or a table that differs afterwards. Only in the last case rows are stored.
 */
export async function restore(
  server: Database,
  db: Database,
  folder: string,
  options: RestoreOptions,
): Promise<Restored[]> {
  const manifest = await readManifest(folder)
  const schema = toSchemaOf(manifest, options.migrations)
  await checkFiles(folder, manifest, options.onChecked)
  await createMissing(server, db.name)
  const taken = `another restore into ${db.name} is running: wait until it has ended`
  return withLock(server, { name: `restore into ${db.name}`, taken, log: options.log }, (lock) =>
    restoreAlone(db, { folder, manifest: manifest, schema, lock }, options),
  )
}

/** A backup that passed all checks. */
interface Backup {
  readonly folder: string
  readonly manifest: Manifest
  readonly schema: SchemaOf
  readonly lock: Lock
}

async function restoreAlone(db: Database, backup: Backup, options: RestoreOptions): Promise<Restored[]> {
  const { manifest, schema, lock } = backup
  const id = toBackupId(manifest)
  const { applied, restoring } = await readSchema(db, schema.released)
  requireSameBackup(db, restoring, id)
  if (restoring !== undefined) options.onTakenUp?.()
  // A restore into existing rows needs no mark: a partial one is harmless, and the next run repeats it.
  const isMarked = restoring !== undefined || !options.intoExisting
  const mark = async (isLoaded: boolean) => isMarked && markRestoring(db, { backup: id, isLoaded })
  let restored = manifest.tables.map(toRestored)
  if (!restoring?.isLoaded) {
    refuseLater(db, schema.own, applied)
    if (restoring === undefined && !options.intoExisting) await refuseRows(db)
    await mark(false)
    await applyMissing(db, schema.own, applied, options.log)
    restored = await loadTables(db, backup, { ...options, isTakenUp: restoring !== undefined })
    await lock.requireHeld()
    await mark(true)
  }
  await applyMissing(db, schema.later, applied, options.log)
  await endRestoring(db)
  return restored
}

function requireSameBackup(db: Database, restoring: Restoring | undefined, backup: string): void {
  if (restoring === undefined || restoring.backup === backup) return
  const way = 'continue that one, or set another CLICKHOUSE_DATABASE'
  throw new DataError('storage', `${db.name} holds a part of another backup: ${way}`)
}

const toRestored = ({ name, rows }: TableFiles): Restored => ({ name, rows, equal: true })

/** Loads and compares every table. A continued restore only compares tables that are complete. */
async function loadTables(
  db: Database,
  { folder, manifest, lock }: Backup,
  { isTakenUp, intoExisting, onTable }: RestoreOptions & { isTakenUp: boolean },
): Promise<Restored[]> {
  const tables = new Map((await listTables(db)).map((table) => [table.name, table]))
  const restored: Restored[] = []
  for (const from of manifest.tables) {
    const table = tables.get(from.name)
    if (table === undefined) throw new DataError('migration', `${from.name} is in the backup and not in its schema`)
    await lock.requireHeld()
    // A backup may contain rows beyond the table's TTL, which a merge between load and comparison would delete.
    const one = await keepingOld(db, table, async () => {
      const isThere = isTakenUp && (await isEqual(db, table, from))
      return isThere ? toRestored(from) : loadTable(db, folder, table, from)
    })
    restored.push(one)
    onTable(one)
  }
  const different = restored.filter(({ equal }) => !equal).map(({ name }) => name)
  if (different.length === 0 || intoExisting) return restored
  throw new DataError('storage', `these tables differ from the backup: ${different.join(', ')}`)
}

async function loadTable(db: Database, folder: string, table: StoredTable, from: TableFiles): Promise<Restored> {
  const { columns } = from
  for (const { path } of from.files)
    await db.load({ table: from.name, columns, format: FORMAT, data: openFile(folder, path) })
  return { name: from.name, rows: from.rows, equal: await isEqual(db, table, from) }
}

const isEqual = async (db: Database, table: StoredTable, { columns, sha256 }: TableFiles): Promise<boolean> =>
  (await hashContent(db, { ...table, columns })) === sha256

async function refuseRows(db: Database): Promise<void> {
  const filled: string[] = []
  for (const { name } of await listTables(db)) if ((await countRows(db, name)) > 0) filled.push(name)
  if (filled.length === 0) return
  throw new DataError(
    'storage',
    `${db.name} is not empty (${filled.join(', ')}): name another CLICKHOUSE_DATABASE, or give --into-existing`,
  )
}

async function main(): Promise<void> {
  const { values, positionals } = readCommandLine({
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
  const config = loadCommandConfig().clickhouse
  const server = createDatabase(config, 'write', { database: 'default' })
  const db = createDatabase(config, 'write')
  sayHowItGoesOn(db.name)
  const restored = await restore(server, db, folder, {
    intoExisting: values['into-existing'],
    log: createLog('restore', 'warn'),
    onChecked: createParts('files checked'),
    onTakenUp: () => console.error('continuing an interrupted restore of this backup'),
    onTable: ({ name, rows, equal }) => console.error(`${name}: ${rows} rows${equal ? '' : ', among other rows'}`),
  })
  await Promise.all([server.close(), db.close()])
  const rows = restored.reduce((sum, table) => sum + table.rows, 0)
  if (values.json) console.log(JSON.stringify({ database: db.name, rows, tables: restored }, null, 2))
  else console.log(`${db.name}: ${rows} rows of ${restored.length} tables are stored and compared`)
}

/** Explains to the operator how to continue after an interrupt. */
function sayHowItGoesOn(database: string): void {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)
    process.once(signal, () => {
      console.error(`stopped: ${database} may hold a part of the backup; the same command continues the restore`)
      process.exit(code)
    })
}

async function check(folder: string, json: boolean): Promise<void> {
  const contents = await readManifest(folder)
  toSchemaOf(contents)
  await checkFiles(folder, contents, createParts('files checked'))
  const tables = contents.tables.map(({ name, rows }) => ({ name, rows }))
  if (json) console.log(JSON.stringify({ database: contents.database, createdAt: contents.createdAt, tables }, null, 2))
  else console.log(tables.map(({ name, rows }) => `${name}: ${rows} rows`).join('\n'))
}

if (isMain(import.meta.url)) runCommand(main)
