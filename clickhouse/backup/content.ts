import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { z } from 'zod'
import type { Database } from '../../shared/store/clickhouse.ts'
import { onCluster, toLocal } from '../../shared/store/topology.ts'
import { SHARDED } from '../cluster/sharding.ts'

/** A table with rows: its columns that are stored, and what its rows are ordered and replaced by. */
export interface StoredTable {
  readonly name: string
  readonly columns: readonly string[]
  readonly sortingKey: string
  /** Whether some of its rows go when they are old. */
  readonly hasTtl: boolean
}

/** Text, so that it goes into any version of ClickHouse, and line by line. */
export const FORMAT = 'TabSeparated'

/** Only the schema's own record is left out: whoever restores makes the schema first. */
const LEFT_OUT = new Set(['migrations'])

/** What says that rows are there. */
const SPEAKING = ['job_state', 'coverage', 'coverage_notes', 'coverage_wanted', 'computations', 'registry_versions']

const tableRow = z.object({
  name: z.string(),
  sorting_key: z.string(),
  has_ttl: z.boolean(),
  columns: z.array(z.string()),
})

/** The table that holds the rows. */
const toStored = (db: Database, name: string) => (db.cluster === undefined ? name : toLocal(name))

/**
 * The tables with rows, in the order in which they are copied while others go on writing. What speaks of rows comes first,
 * so that it never speaks of some that are not there; roll-ups come after what they are made of, because a row of theirs
 * that is ahead is stored again with the next run, while one that is missing stays missing.
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
  const names = [...SPEAKING, ...[...SHARDED.keys()].filter((name) => !SPEAKING.includes(name) && !LEFT_OUT.has(name))]
  return names.flatMap((name) => {
    const row = stored.get(toStored(db, name))
    if (row === undefined) return []
    return [{ name, columns: row.columns, sortingKey: row.sorting_key, hasTtl: row.has_ttl }]
  })
}

/** A table's rows as text, each key once, in the order of their keys: the same rows are the same bytes. */
export function readContent(db: Database, { name, columns, sortingKey }: StoredTable): Promise<Readable> {
  const sql = `SELECT ${columns.join(', ')} FROM ${name} FINAL ORDER BY ${sortingKey}`
  return db.stream({ name: `read ${name}`, sql, format: FORMAT, settings: { max_execution_time: 0 } })
}

/**
 * Does `work` while the table keeps the rows that its TTL would take. A server knows that only until it restarts, and until
 * this is done again when the work was killed.
 */
export async function keepingOld<T>(db: Database, { name, hasTtl }: StoredTable, work: () => Promise<T>): Promise<T> {
  if (!hasTtl) return work()
  const tell = (verb: 'STOP' | 'START') => {
    const sql = `SYSTEM ${verb} TTL MERGES${onCluster(db.cluster)} ${db.name}.${toStored(db, name)}`
    return db.command({ name: `${verb.toLowerCase()} ttl of ${name}`, sql })
  }
  await tell('STOP')
  try {
    return await work()
  } finally {
    await tell('START')
  }
}

/** What a table's rows are told apart by: SHA-256 of them as text. */
export async function hashContent(db: Database, table: StoredTable): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of await readContent(db, table)) hash.update(chunk as Buffer)
  return hash.digest('hex')
}
