import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import type { Database } from '../../shared/store/store.ts'
import { parseRestoring, RESTORING_TABLE, type Restoring } from './restoring.ts'

/** The stored state of a database's schema. */
export interface StoredSchema {
  /** The checksums of the applied migrations, by name and in order. */
  readonly applied: ReadonlyMap<string, string>
  /** The unfinished restore. */
  readonly restoring: Restoring | undefined
}

/** The record of applied files, created before all of them. */
export const MIGRATIONS_TABLE = `CREATE TABLE IF NOT EXISTS migrations
(
    name       String,
    checksum   String,
    applied_at DateTime64(3, 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(applied_at)
ORDER BY name`

const tableRow = z.object({ name: z.string(), engine_full: z.string(), comment: z.string() })
const appliedRow = z.object({ name: z.string(), checksum: z.string() })

/**
 * Reads a database's schema without changing it.
 * @throws DataError `migration` if the database was created for another topology, `schema_too_old` if it was created
 * before the first release.
 */
export async function readSchema(db: Database, released: ReadonlyMap<string, string>): Promise<StoredSchema> {
  const tables = await db.rows({
    name: 'schema',
    sql: `SELECT name, engine_full, comment FROM system.tables
          WHERE database = currentDatabase() AND name IN ('migrations', {restoring: String})`,
    params: { restoring: RESTORING_TABLE },
    schema: tableRow,
  })
  const [migrations, restoring] = ['migrations', RESTORING_TABLE].map((name) => tables.find((one) => one.name === name))
  if (migrations !== undefined) requireTopology(db, migrations.engine_full)
  const rows =
    migrations === undefined
      ? []
      : await db.rows({
          name: 'migrations',
          sql: 'SELECT name, checksum FROM migrations FINAL ORDER BY name',
          schema: appliedRow,
        })
  const applied = new Map(rows.map(({ name, checksum }) => [name, checksum]))
  refuseUnreleased(db, applied, released)
  return { applied, restoring: restoring === undefined ? undefined : parseRestoring(restoring.comment) }
}

/**
 * Throws if the database was created for a single server and a cluster is set, for another cluster, or for a cluster
 * and none is set. Its tables would be split between both topologies.
 */
function requireTopology(db: Database, engine: string): void {
  const cluster = /^Distributed\('([^']*)'/.exec(engine)?.[1]
  if (cluster === db.cluster) return
  const toWords = (name: string | undefined) => (name === undefined ? 'a single server' : `the cluster ${name}`)
  throw new DataError(
    'migration',
    `${db.name} was made for ${toWords(cluster)}, and CLICKHOUSE_CLUSTER is ${toWords(db.cluster)}. ` +
      'Data moves with `npm run backup` and `npm run restore` into an empty database (docs/operations.md)',
  )
}

/** Released files never change, so another checksum under such a name comes from before the release. */
function refuseUnreleased(
  db: Database,
  applied: ReadonlyMap<string, string>,
  released: ReadonlyMap<string, string>,
): void {
  const [early] = findUnreleased(applied, released)
  if (early === undefined) return
  throw new DataError(
    'schema_too_old',
    `${db.name} was made before the first release (its ${early} differs) and cannot be upgraded: ` +
      'name another CLICKHOUSE_DATABASE, and collect its history with npm run backfill',
  )
}

/** The names of released files with other content in `applied`. */
export const findUnreleased = (
  applied: ReadonlyMap<string, string>,
  released: ReadonlyMap<string, string>,
): readonly string[] =>
  [...applied].flatMap(([name, checksum]) => ((released.get(name) ?? checksum) === checksum ? [] : [name]))

/** @throws DataError `migration` if the database has a part of a backup. */
export function refuseHalfRestored(db: Database, { restoring }: StoredSchema): void {
  if (restoring === undefined) return
  throw new DataError(
    'migration',
    `${db.name} holds a part of a backup: npm run restore with the same folder continues; it has to complete first`,
  )
}
