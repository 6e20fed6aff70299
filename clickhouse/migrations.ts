import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { z } from 'zod'
import { DataError } from '../shared/errors.ts'
import {
  type Database,
  onCluster,
  quoteName,
  type Statement,
  toClickHouseCode,
  toLocal,
} from '../shared/store/store.ts'
import type { Logger } from '../shared/telemetry/log.ts'
import { renderStatement } from './cluster/render.ts'
import { loadReleased, MIGRATIONS, refuseRewritten } from './schema/released.ts'
import { MIGRATIONS_TABLE, readSchema, refuseHalfRestored, type StoredSchema } from './schema/stored.ts'

export interface Migration {
  /** The file's name, `NNN_<dataset>.sql`. */
  readonly name: string
  /** SHA-256 of the file, to detect an edit after its application. */
  readonly checksum: string
  /** As written in the file; `renderStatement` renders them for the server. */
  readonly statements: readonly string[]
}

/**
 * The migration files in order. Statements end with a semicolon at the end of a line.
 * @throws DataError `migration` if a released file was changed.
 */
export function loadMigrations(from: string = MIGRATIONS): Migration[] {
  const files = readdirSync(from).filter((file) => /^\d{3}_.*\.sql$/.test(file))
  const migrations = files.sort().map((name) => {
    const sql = readFileSync(join(from, name), 'utf8')
    const checksum = createHash('sha256').update(sql).digest('hex')
    return { name, checksum, statements: toStatements(sql) }
  })
  refuseRewritten(migrations, loadReleased(from))
  return migrations
}

function toStatements(sql: string): string[] {
  return sql.split(/;[ \t]*$/m).filter((statement) => statement.replace(/--.*$/gm, '').trim() !== '')
}

/**
 * Upgrades the database's schema to the files: creates the database, then applies every file that is not recorded.
 * Statements are idempotent, so an interrupted run or two concurrent runs end in the same schema.
 * @throws DataError `migration` if a released or applied file was edited or is missing, `schema_too_old` for a database
 * from before the first release. The database is then unchanged.
 */
export async function migrate(
  server: Database,
  db: Database,
  database: string,
  log: Logger,
  from?: string,
): Promise<void> {
  await createMissing(server, database)
  const schema = await readSchema(db, loadReleased(from))
  refuseHalfRestored(db, schema)
  const migrations = loadMigrations(from)
  refuseDrift(migrations, schema.applied)
  await applyMissing(db, migrations, schema.applied, log)
}

/** Reasons why a server cannot run a statement on a cluster, by ClickHouse's error code. */
const NO_CLUSTER: Readonly<Record<string, string>> = {
  '701': 'has no cluster of that name',
  // Without a Keeper: 139 of a regular server, 392 of the embedded engine.
  '139': 'has no Keeper, which a cluster needs',
  '392': 'has no Keeper, which a cluster needs',
}

/**
 * Creates a missing database.
 * @throws DataError `config` if CLICKHOUSE_CLUSTER is set and the server does not belong to such a cluster.
 */
export async function createMissing(server: Database, database: string): Promise<void> {
  const { cluster } = server
  try {
    if (
      await isEverywhere(server, {
        of: 'databases',
        where: 'name = {database: String}',
        params: { database },
        things: 1,
      })
    )
      return
    const sql = `CREATE DATABASE IF NOT EXISTS ${database}${onCluster(cluster)}`
    await change(server, { name: 'create-database', sql })
  } catch (error) {
    const reason = NO_CLUSTER[toClickHouseCode(error) ?? '']
    if (cluster === undefined || reason === undefined) throw error
    const what = `CLICKHOUSE_CLUSTER is ${cluster}, and the ClickHouse server ${reason}`
    throw new DataError('config', `${what}: leave it empty for a single server (docs/scaling.md)`, { cause: error })
  }
}

interface Sought {
  readonly of: 'databases' | 'tables'
  readonly where: string
  readonly params: Readonly<Record<string, unknown>>
  /** Required number per server. */
  readonly things: number
}

const counts = z.object({ servers: z.int(), found: z.int() })

/**
 * Whether every responding server of the cluster has the items. Then there is nothing to create, and a failed server
 * does not matter. Returns false for a single server, because CREATE ... IF NOT EXISTS is enough there.
 */
async function isEverywhere(db: Database, { of, where, params, things }: Sought): Promise<boolean> {
  if (db.cluster === undefined) return false
  const every = (table: string) => `clusterAllReplicas(${quoteName(String(db.cluster))}, system.${table})`
  const find = db.rows({
    name: `find-${of}`,
    sql: `SELECT (SELECT count() FROM ${every('one')}) AS servers, (SELECT count() FROM ${every(of)} WHERE ${where}) AS found`,
    params,
    settings: { skip_unavailable_shards: 1 },
    schema: counts,
  })
  // If the check fails, the CREATE statement fails too and reports the reason.
  const [count] = await find.catch((error: unknown) => {
    if (error instanceof DataError && error.code === 'storage') return []
    throw error
  })
  return count !== undefined && count.servers > 0 && count.found >= count.servers * things
}

/** ClickHouse's code for a schema change that some servers of a cluster did not complete in time. */
const NOT_ON_ALL = '159'

/**
 * Changes the schema.
 * @throws DataError `storage`; if a server of the cluster is down, the message explains that all servers must be
 * running.
 */
async function change(db: Database, statement: Statement): Promise<void> {
  try {
    await db.command(statement)
  } catch (error) {
    if (db.cluster === undefined || toClickHouseCode(error) !== NOT_ON_ALL) throw error
    const what = `not every server of the cluster ${db.cluster} answers, and a schema change needs all of them`
    const cause = error instanceof DataError ? error.cause : error
    throw new DataError('storage', `${what}: start the stopped ones, then repeat this (docs/scaling.md)`, {
      cause,
    })
  }
}

/** Applies and records the migrations that are not among the applied ones. */
export async function applyMissing(
  db: Database,
  migrations: readonly Migration[],
  applied: ReadonlyMap<string, string>,
  log: Logger,
): Promise<void> {
  const names = ['migrations', toLocal('migrations')]
  const where = 'database = {database: String} AND name IN {names: Array(String)}'
  const sought = { of: 'tables', where, params: { database: db.name, names }, things: names.length } as const
  if (!(await isEverywhere(db, sought))) await apply(db, 'create-migrations', [MIGRATIONS_TABLE])
  for (const migration of migrations.filter(({ name }) => !applied.has(name))) {
    await applyWithRetries(db, migration, log)
    const row = { name: migration.name, checksum: migration.checksum, applied_at: new Date().toISOString() }
    await db.insert({ table: 'migrations', rows: [row] })
    log.info({ migration: migration.name, statements: migration.statements.length }, 'migration applied')
  }
}

const MOST_TRIES = 5
const RETRY_MS = 2_000

/**
 * The engine rejects a statement while a concurrent run alters the same table. Repeats the complete file, so that it
 * takes effect regardless of the other run.
 */
async function applyWithRetries(db: Database, { name, statements }: Migration, log: Logger): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await apply(db, name, statements)
    } catch (error) {
      if (!(error instanceof DataError) || error.code !== 'storage' || tries === MOST_TRIES) throw error
      if (toClickHouseCode(error) === NOT_ON_ALL) throw error
      log.warn({ migration: name, tries, reason: error.message }, 'a migration is retried')
      await wait(RETRY_MS)
    }
  }
}

async function apply(db: Database, name: string, statements: readonly string[]): Promise<void> {
  const target = db.cluster === undefined ? undefined : { cluster: db.cluster, database: db.name }
  for (const sql of statements.flatMap((statement) => renderStatement(statement, target)))
    await change(db, { name, sql })
}

/**
 * Throws if the database lacks migrations: rows inserted into an incomplete schema would be stored only in part.
 * @returns the database's schema, which may be newer than the files.
 * @throws DataError `migration` that names the missing files, `schema_too_old`, or `storage`.
 */
export async function requireMigrated(db: Database): Promise<StoredSchema> {
  const schema = await readSchema(db, loadReleased())
  refuseHalfRestored(db, schema)
  const missing = loadMigrations().filter(({ name }) => !schema.applied.has(name))
  if (missing.length === 0) return schema
  const names = missing.map(({ name }) => name).join(', ')
  throw new DataError('migration', `the database lacks ${names}: run npm run migrate first`)
}

/** @throws DataError `migration` if an applied file was edited or is missing. */
function refuseDrift(migrations: readonly Migration[], applied: ReadonlyMap<string, string>): void {
  const files = new Map(migrations.map((migration) => [migration.name, migration.checksum]))
  const mistakes = [...applied].flatMap(([name, checksum]) => {
    const file = files.get(name)
    if (file === undefined)
      return [`${name} is applied, but its file is missing: the database is newer than this program`]
    return file === checksum ? [] : [`${name} was edited after it was applied: put the change into a new file`]
  })
  if (mistakes.length > 0) throw new DataError('migration', `schema drift: ${mistakes.join('; ')}`)
}
