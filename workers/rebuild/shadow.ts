import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { toDistributed, toReplicationPath } from '../../clickhouse/cluster/render.ts'
import { DataError } from '../../shared/errors.ts'
import { type Database, onCluster, quoteName, toLocal } from '../../shared/store/store.ts'

/** A table with the same schema as a live table that can replace it atomically. */
export interface Shadow {
  readonly name: string
  /**
   * The table that holds the shadow's rows on a node. On a single server, that is the shadow table itself; `storedLive`
   * is the same for the live table.
   */
  readonly stored: string
  readonly storedLive: string
  /** Table for rows inserted during the swap; it exists only then. */
  readonly arriving: string
  /** Creates the table if it is missing, and the view that feeds it with new inserts. */
  create(feed: string): Promise<void>
  /** Starts buffering all new inserts in `arriving`, in addition to both tables. */
  keepArriving(feed: string): Promise<void>
  swap(): Promise<void>
  /** Inserts the buffered rows into the live table. */
  storeArrived(): Promise<void>
  /** The statements that stop the feed and drop the former live table. */
  readonly drops: readonly string[]
  drop(): Promise<void>
}

/** Returns the shadow of a table. On a cluster, every step runs on all nodes. */
export function toShadow(db: Database, table: string): Shadow {
  const name = `${table}_rebuild`
  const on = onCluster(db.cluster)
  const arriving = `${name}_arriving`
  const toStored = (one: string) => (db.cluster === undefined ? one : toLocal(one))
  const [stored, storedLive] = [toStored(name), toStored(table)]
  const run = (what: string, sql: string) => db.command({ name: what, sql })
  // The view is dropped first: without its target table it would fail the inserts that feed it.
  const drops = [name, arriving].flatMap((one) => [
    `DROP VIEW IF EXISTS ${one}_mv${on} SYNC`,
    ...[...new Set([one, toStored(one)])].map((part) => `DROP TABLE IF EXISTS ${part}${on} SYNC`),
  ])
  const createFed = async (one: string, feed: string) => {
    for (const sql of await toTables(db, table, one)) await run('create-shadow', sql)
    const view = `CREATE MATERIALIZED VIEW IF NOT EXISTS ${one}_mv${on} TO ${toStored(one)} AS ${feed}`
    await run('feed-shadow', view)
  }
  return {
    name,
    stored,
    storedLive,
    arriving,
    drops,
    create: (feed) => createFed(name, feed),
    keepArriving: (feed) => createFed(arriving, feed),
    storeArrived: async () => {
      const columns = (await readShared(db, arriving, table)).join(', ')
      await run('store-arrived', `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM ${arriving}`)
    },
    swap: () => run('swap', `EXCHANGE TABLES ${storedLive} AND ${stored}${on}`),
    drop: async () => {
      for (const sql of drops) await run('drop-shadow', sql)
    },
  }
}

/** Returns the columns that both tables have: an upgrade may have changed those of the live table. */
async function readShared(db: Database, table: string, secondTable: string): Promise<string[]> {
  const rows = await db.rows({
    name: 'shared-columns',
    sql: `SELECT name FROM system.columns WHERE database = currentDatabase() AND table = {table: String}
AND default_kind NOT IN ('MATERIALIZED', 'ALIAS', 'EPHEMERAL')
AND name IN (SELECT name FROM system.columns WHERE database = currentDatabase() AND table = {other: String})
ORDER BY position`,
    params: { table, other: secondTable },
    schema: z.object({ name: z.string() }),
  })
  return rows.map(({ name }) => name)
}

async function toTables(db: Database, table: string, shadow: string): Promise<readonly string[]> {
  const { cluster, name: database } = db
  if (cluster === undefined) return [`CREATE TABLE IF NOT EXISTS ${shadow} AS ${table}`]
  // A swapped table keeps its path in Keeper, so every shadow needs a path that was never used.
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
