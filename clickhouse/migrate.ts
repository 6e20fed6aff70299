import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { type Config, loadConfig } from '../shared/config/config.ts'
import { DataError } from '../shared/errors.ts'
import { isMain, runProgram } from '../shared/process.ts'
import { loadRegistry } from '../shared/registry/registry.ts'
import { createDatabase, type Database } from '../shared/store/clickhouse.ts'
import { onCluster } from '../shared/store/topology.ts'
import { createLog, type Logger } from '../shared/telemetry/log.ts'
import { renderStatement } from './cluster/render.ts'
import { storeRegistry } from './registry.ts'

export interface Migration {
  /** The file's name, `NNN_<dataset>.sql`. */
  readonly name: string
  /** SHA-256 of the file as it stands, so that an edit after it was applied is noticed. */
  readonly checksum: string
  /** As they stand in the file; `renderStatement` makes of them what the server gets. */
  readonly statements: readonly string[]
}

const directory = join(import.meta.dirname, 'migrations')

/** The migration files in order; statements end with a semicolon at a line's end. */
export function loadMigrations(from: string = directory): Migration[] {
  const files = readdirSync(from).filter((file) => /^\d{3}_.*\.sql$/.test(file))
  return files.sort().map((name) => {
    const sql = readFileSync(join(from, name), 'utf8')
    const checksum = createHash('sha256').update(sql).digest('hex')
    return { name, checksum, statements: toStatements(sql) }
  })
}

function toStatements(sql: string): string[] {
  return sql.split(/;[ \t]*$/m).filter((statement) => statement.replace(/--.*$/gm, '').trim() !== '')
}

const appliedRow = z.object({ name: z.string(), checksum: z.string() })

/** Where it is recorded which files were applied; it comes before all of them. */
export const MIGRATIONS_TABLE = `CREATE TABLE IF NOT EXISTS migrations
(
    name       String,
    checksum   String,
    applied_at DateTime64(3, 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(applied_at)
ORDER BY name`

/**
 * Brings the database's schema up to the files: creates the database, then applies every file that is not recorded.
 * Each statement may be repeated, so a run that died, or two at once, end in the same schema.
 * @throws DataError `migration` when an applied file was edited or is gone.
 */
export async function migrate(
  server: Database,
  db: Database,
  database: string,
  log: Logger,
  from?: string,
): Promise<void> {
  const { cluster } = db
  const create = `CREATE DATABASE IF NOT EXISTS ${database}${onCluster(cluster)}`
  await server.command({ name: 'create-database', sql: create })
  const migrations = loadMigrations(from)
  const applied = await readApplied(db)
  refuseDrift(migrations, applied)
  for (const migration of migrations.filter(({ name }) => !applied.has(name))) {
    await applyAgain(db, migration, log)
    const row = { name: migration.name, checksum: migration.checksum, applied_at: new Date().toISOString() }
    await db.insert({ table: 'migrations', rows: [row] })
    log.info({ migration: migration.name, statements: migration.statements.length }, 'migration applied')
  }
}

const MOST_TRIES = 5
const TRY_AGAIN_MS = 2_000

/**
 * Another run at the same time may be altering the table that a statement is about: the engine refuses that, and soon takes
 * it. All of the file is done again, so that it ends as written whatever the other run did in between.
 */
async function applyAgain(db: Database, { name, statements }: Migration, log: Logger): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await apply(db, name, statements)
    } catch (error) {
      if (!(error instanceof DataError) || error.code !== 'storage' || tries === MOST_TRIES) throw error
      log.warn({ migration: name, tries, reason: error.message }, 'a migration is tried again')
      await wait(TRY_AGAIN_MS)
    }
  }
}

async function apply(db: Database, name: string, statements: readonly string[]): Promise<void> {
  const target = db.cluster === undefined ? undefined : { cluster: db.cluster, database: db.name }
  for (const sql of statements.flatMap((statement) => renderStatement(statement, target)))
    await db.command({ name, sql })
}

async function readApplied(db: Database): Promise<Map<string, string>> {
  await refuseOtherTopology(db)
  await apply(db, 'create-migrations', [MIGRATIONS_TABLE])
  const rows = await db.rows({
    name: 'migrations',
    sql: 'SELECT name, checksum FROM migrations FINAL',
    schema: appliedRow,
  })
  return new Map(rows.map(({ name, checksum }) => [name, checksum]))
}

/**
 * Refuses a database that lacks migrations: rows inserted into half a schema would be stored in part, and reported whole.
 * @throws DataError `migration` that names what is missing, or `storage`.
 */
export async function requireMigrated(db: Database): Promise<void> {
  const applied = await readApplied(db)
  const missing = loadMigrations().filter(({ name }) => !applied.has(name))
  if (missing.length === 0) return
  const names = missing.map(({ name }) => name).join(', ')
  throw new DataError('migration', `the database lacks ${names}: run npm run migrate first`)
}

/**
 * Refuses a database that was made for a single server where a cluster is set, for another cluster, or for a cluster
 * where none is set: half of its tables would be here and half there.
 */
async function refuseOtherTopology(db: Database): Promise<void> {
  const [made] = await db.rows({
    name: 'topology',
    sql: "SELECT engine_full FROM system.tables WHERE database = currentDatabase() AND name = 'migrations'",
    schema: z.object({ engine_full: z.string() }),
  })
  if (made === undefined) return
  const cluster = /^Distributed\('([^']*)'/.exec(made.engine_full)?.[1]
  if (cluster === db.cluster) return
  const toWords = (name: string | undefined) => (name === undefined ? 'a single server' : `the cluster ${name}`)
  throw new DataError(
    'migration',
    `${db.name} was made for ${toWords(cluster)}, and CLICKHOUSE_CLUSTER says ${toWords(db.cluster)}. ` +
      'Data moves with `npm run backup` and `npm run restore` into an empty database (docs/operations.md)',
  )
}

function refuseDrift(migrations: readonly Migration[], applied: ReadonlyMap<string, string>): void {
  const files = new Map(migrations.map((migration) => [migration.name, migration.checksum]))
  const mistakes = [...applied].flatMap(([name, checksum]) => {
    const file = files.get(name)
    if (file === undefined) return [`${name} is applied but its file is gone: the database is newer than this program`]
    return file === checksum ? [] : [`${name} was edited after it was applied: put the change into a new file`]
  })
  if (mistakes.length > 0) throw new DataError('migration', `schema drift: ${mistakes.join('; ')}`)
}

/**
 * Compares the tables and columns in the database with those the migration files make in an empty one.
 * @returns a line per difference; none when the schema is what the files say.
 */
export async function findDrift(
  db: Database,
  database: string,
  scratch: Database,
  scratchName: string,
): Promise<string[]> {
  const columns = async (of: Database, name: string) =>
    new Set(
      (
        await of.rows({
          name: 'columns',
          sql: `SELECT concat(table, '.', name, ' ', type, ' ', default_kind, ' ', compression_codec) AS column
                FROM system.columns WHERE database = {database:String} ORDER BY column`,
          params: { database: name },
          schema: z.object({ column: z.string() }),
        })
      ).map(({ column }) => column),
    )
  const [have, want] = [await columns(db, database), await columns(scratch, scratchName)]
  return [
    ...[...want].filter((column) => !have.has(column)).map((column) => `missing: ${column}`),
    ...[...have].filter((column) => !want.has(column)).map((column) => `unexpected: ${column}`),
  ]
}

/** A name of its own for each check, so that several may run. */
const toScratchName = () => `dao_data_schema_check_${randomBytes(4).toString('hex')}`

const HELP = `npm run migrate             brings the schema and the registry's records up to the files
npm run migrate -- --check  compares the schema with the files and changes nothing; exits 1 where they differ`

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { check: { type: 'boolean' }, help: { type: 'boolean' } } })
  if (values.help) return console.log(HELP)
  const config = loadConfig().clickhouse
  const log = createLog('migrate', values.check ? 'warn' : 'info')
  const server = createDatabase(config, 'write', { database: 'default' })
  const db = createDatabase(config, 'write')
  if (values.check) await check(server, db, config, log)
  else {
    await migrate(server, db, config.database, log)
    await storeRegistry(db, loadRegistry(), log)
  }
  await Promise.all([server.close(), db.close()])
}

async function check(server: Database, db: Database, config: Config['clickhouse'], log: Logger): Promise<void> {
  const scratchName = toScratchName()
  const scratch = createDatabase(config, 'write', { database: scratchName })
  const on = config.cluster === undefined ? '' : `${onCluster(config.cluster)} SYNC`
  let differences: string[]
  try {
    await migrate(server, scratch, scratchName, log)
    differences = await findDrift(db, config.database, scratch, scratchName)
  } finally {
    await server.command({ name: 'drop-scratch', sql: `DROP DATABASE IF EXISTS ${scratchName}${on}` })
    await scratch.close()
  }
  console.log(differences.length === 0 ? 'the schema is what the files say' : differences.join('\n'))
  if (differences.length > 0) process.exitCode = 1
}

if (isMain(import.meta.url)) runProgram(main)
