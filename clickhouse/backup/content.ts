import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { z } from 'zod'
import { type Database, onCluster, toLocal } from '../../shared/store/store.ts'
import { readShardingColumns } from '../cluster/sharding.ts'

/** A table with rows: its stored columns, and its sorting key, which orders and replaces rows. */
export interface StoredTable {
  readonly name: string
  readonly columns: readonly string[]
  readonly sortingKey: string
  /** Whether some of its rows expire. */
  readonly hasTtl: boolean
}

/** Text, because every ClickHouse version can read it, line by line. */
export const FORMAT = 'TabSeparated'

/** The record of the schema is omitted, because a restore creates the schema first. */
const OMITTED = new Set(['migrations'])

/** Tables that describe other tables' rows. */
const SPEAKING = ['job_state', 'coverage', 'coverage_notes', 'coverage_wanted', 'computations', 'registry_versions']

const tableRow = z.object({
  name: z.string(),
  sorting_key: z.string(),
  has_ttl: z.boolean(),
  columns: z.array(z.string()),
})

/** The table with the rows. */
const toStored = (db: Database, name: string) => (db.cluster === undefined ? name : toLocal(name))

/**
 * Lists the tables with rows in the order of the copy, which runs while others write. Tables that describe rows come
 * first, so that they never describe rows missing in the copy. Roll-ups come after their inputs: a row that is ahead of
 * its input is stored again by the next run, while a missing row would stay missing.
 */
export async function listTables(db: Database): Promise<StoredTable[]> {
  const rows = await db.rows({
    name: 'tables',
    sql: `SELECT t.name AS name, any(t.sorting_key) AS sorting_key,
            (any(t.engine_full) LIKE '% TTL %')::Bool AS has_ttl,
            arrayMap(c -> c.2, arraySort(groupArray((c.position, c.name)))) AS columns
          FROM system.tables AS t INNER JOIN system.columns AS c ON c.database = t.database AND c.table = t.name
          WHERE t.database = {database: String} AND t.engine LIKE '%MergeTree'
            AND c.default_kind NOT IN ('ALIAS', 'MATERIALIZED')
          GROUP BY t.name`,
    params: { database: db.name },
    schema: tableRow,
  })
  const stored = new Map(rows.map((row) => [row.name, row]))
  const names = [
    ...SPEAKING,
    ...[...readShardingColumns().keys()].filter((name) => !SPEAKING.includes(name) && !OMITTED.has(name)),
  ]
  return names.flatMap((name) => {
    const row = stored.get(toStored(db, name))
    if (row === undefined) return []
    return [{ name, columns: row.columns, sortingKey: row.sorting_key, hasTtl: row.has_ttl }]
  })
}

/** A table's rows as text, each key once, sorted by key, so that equal rows have equal bytes. */
export function readContent(db: Database, { name, columns, sortingKey }: StoredTable): Promise<Readable> {
  const sql = `SELECT ${columns.join(', ')} FROM ${name} FINAL ORDER BY ${sortingKey}`
  return db.stream({ name: `read ${name}`, sql, format: FORMAT, settings: { max_execution_time: 0 } })
}

/**
 * Runs `work` while the TTL of the table is suspended. The server forgets this at its restart; if `work` is killed, the
 * next call restarts the TTL.
 */
export async function keepingOld<T>(db: Database, { name, hasTtl }: StoredTable, work: () => Promise<T>): Promise<T> {
  if (!hasTtl) return work()
  const switchTtl = (verb: 'STOP' | 'START') => {
    const sql = `SYSTEM ${verb} TTL MERGES${onCluster(db.cluster)} ${db.name}.${toStored(db, name)}`
    return db.command({ name: `${verb.toLowerCase()} ttl of ${name}`, sql })
  }
  await switchTtl('STOP')
  try {
    return await work()
  } finally {
    await switchTtl('START')
  }
}

/** SHA-256 of a table's rows as text. */
export async function hashContent(db: Database, table: StoredTable): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of await readContent(db, table)) hash.update(chunk as Buffer)
  return hash.digest('hex')
}
