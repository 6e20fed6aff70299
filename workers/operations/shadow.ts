import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { toDistributed, toReplicationPath } from '../../clickhouse/render.ts'
import type { Database } from '../../shared/clickhouse.ts'
import { DataError } from '../../shared/errors.ts'
import { onCluster, quoteName, toLocal } from '../../shared/topology.ts'

/** A table of the same shape beside a live one, which can take its place at once. */
export interface Shadow {
  readonly name: string
  /** The table that holds the rows of `table` on a node; a single server has but `table` itself. */
  readonly stored: string
  readonly storedLive: string
  /** Makes the table where it is missing, and the view that feeds it with what is inserted from now on. */
  create(feed: string): Promise<void>
  swap(): Promise<void>
  /** Ends the feed and drops what the live table was before the swap. */
  drop(): Promise<void>
}

/** The shadow of a table; on a cluster every step happens on all nodes. */
export function toShadow(db: Database, table: string): Shadow {
  const name = `${table}_rebuild`
  const on = onCluster(db.cluster)
  const [stored, storedLive] = db.cluster === undefined ? [name, table] : [toLocal(name), toLocal(table)]
  const run = (what: string, sql: string) => db.command({ name: what, sql })
  return {
    name,
    stored,
    storedLive,
    create: async (feed) => {
      for (const sql of await toTables(db, table, name)) await run('create-shadow', sql)
      await run('feed-shadow', `CREATE MATERIALIZED VIEW IF NOT EXISTS ${name}_mv${on} TO ${stored} AS ${feed}`)
    },
    swap: () => run('swap', `EXCHANGE TABLES ${storedLive} AND ${stored}${on}`),
    drop: async () => {
      // The view goes first: without its table it would fail the inserts that it follows.
      await run('drop-feed', `DROP VIEW IF EXISTS ${name}_mv${on} SYNC`)
      for (const one of new Set([name, stored])) await run('drop-old', `DROP TABLE IF EXISTS ${one}${on} SYNC`)
    },
  }
}

async function toTables(db: Database, table: string, shadow: string): Promise<readonly string[]> {
  const { cluster, name: database } = db
  if (cluster === undefined) return [`CREATE TABLE IF NOT EXISTS ${shadow} AS ${table}`]
  // What was swapped once keeps its path in Keeper, so every shadow needs one that no table ever had.
  const path = quoteName(toReplicationPath(database, `${table}.${randomUUID()}`))
  const engine = (await readEngine(db, toLocal(table))).replace(/^(Replicated\w+\()'[^']*'/, `$1${path}`)
  const head = `CREATE TABLE IF NOT EXISTS ${toLocal(shadow)}${onCluster(cluster)} AS ${toLocal(table)}`
  return [`${head} ENGINE = ${engine}`, toDistributed(shadow, { cluster, database }, table)]
}

async function readEngine(db: Database, table: string): Promise<string> {
  const [row] = await db.rows({
    name: 'engine',
    sql: 'SELECT engine_full FROM system.tables WHERE database = currentDatabase() AND name = {table: String}',
    params: { table },
    schema: z.object({ engine_full: z.string() }),
  })
  if (row === undefined) throw new DataError('storage', `${table} is not on this node of the cluster`)
  return row.engine_full
}
