import { z } from 'zod'
import type { Database } from '../../shared/store/store.ts'

const tableRow = z.object({
  name: z.string(),
  engine: z.string(),
  create_table_query: z.string(),
  total_rows: z.int().nullable(),
})

/** A migrated database that is copied in a fraction of the time of a migration. */
export interface SchemaTemplate {
  readonly database: string
  readonly tables: readonly z.infer<typeof tableRow>[]
  /** Digest of all tables and views, independent of the database's name. */
  readonly digest: string
}

export async function readTemplate(db: Database): Promise<SchemaTemplate> {
  const tables = await db.rows({
    name: 'template',
    sql: 'SELECT name, engine, create_table_query, total_rows FROM system.tables WHERE database = currentDatabase()',
    schema: tableRow,
  })
  return { database: db.name, tables, digest: (await readState(db, db.name)).digest }
}

const state = z.object({ digest: z.string(), filled: z.array(z.string()), mutations: z.int() })

/** The state of a database: its schema, its tables with rows, and the number of mutations. */
async function readState(server: Database, database: string): Promise<z.infer<typeof state>> {
  const [found] = await server.rows({
    name: 'state',
    sql: `SELECT
  toString(groupBitXor(cityHash64(name, replaceAll(create_table_query, {database: String}, '')))) AS digest,
  groupArrayIf(name, total_rows > 0 AND NOT endsWith(engine, 'View')) AS filled,
  (SELECT count() FROM system.mutations WHERE database = {database: String}) AS mutations
FROM system.tables WHERE database = {database: String}`,
    params: { database },
    schema: state,
  })
  if (found === undefined) throw new Error('an aggregate without a row')
  return found
}

/** No test depends on durability, and waiting for the disk would take half of the time. */
const UNSAFE = { fsync_metadata: 0 }

/** Copies the template's tables, views, and the few rows from migrations into `db`. */
export async function copySchema(server: Database, db: Database, { database, tables }: SchemaTemplate): Promise<void> {
  await server.command({ name: 'create-database', sql: `CREATE DATABASE ${db.name}` })
  const isView = ({ engine }: { engine: string }) => engine.endsWith('View')
  for (const selected of [tables.filter((one) => !isView(one)), tables.filter(isView)]) {
    const statements = selected.map((one) => one.create_table_query.replaceAll(`${database}.`, `${db.name}.`))
    await Promise.all(statements.map((sql) => db.command({ name: 'copy-table', sql, settings: UNSAFE })))
  }
  await copyRows(db, { database, tables })
}

async function copyRows(
  db: Database,
  { database, tables }: Pick<SchemaTemplate, 'database' | 'tables'>,
): Promise<void> {
  const filled = tables.filter(({ engine, total_rows }) => !engine.endsWith('View') && (total_rows ?? 0) > 0)
  const copies = filled.map(({ name }) => `INSERT INTO ${name} SELECT * FROM ${database}.${name}`)
  await Promise.all(copies.map((sql) => db.command({ name: 'copy-rows', sql })))
}

/**
 * Resets a used database to a fresh copy, in a tenth of the time of creating 70 tables. Returns false without a change
 * if a reset is impossible: the database is dropped, has another schema, or had mutations.
 */
export async function emptySchema(server: Database, db: Database, template: SchemaTemplate): Promise<boolean> {
  const { digest, filled, mutations } = await readState(server, db.name)
  if (digest !== template.digest || mutations > 0) return false
  await Promise.all(filled.map((table) => db.command({ name: 'empty', sql: `TRUNCATE TABLE ${table}` })))
  await copyRows(db, template)
  return true
}
