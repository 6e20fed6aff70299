import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { parseRestoring, RESTORING_TABLE, type Restoring } from './restoring.ts'

/** What a database says of its schema. */
export interface StoredSchema {
  /** The checksums of the migrations that were applied, by name and in their order. */
  readonly applied: ReadonlyMap<string, string>
  /** The restore that is not over. */
  readonly restoring: Restoring | undefined
}

/** Where it is recorded which files were applied; it comes before all of them. */
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
 * Reads a database's schema and changes nothing.
 * @throws DataError `migration` when the database was made for another topology, `schema_too_old` when it was made before
 *   the first release.
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
  if (migrations !== undefined) refuseOtherTopology(db, migrations.engine_full)
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
 * Refuses a database that was made for a single server where a cluster is set, for another cluster, or for a cluster
 * where none is set: half of its tables would be here and half there.
 */
function refuseOtherTopology(db: Database, engine: string): void {
  const cluster = /^Distributed\('([^']*)'/.exec(engine)?.[1]
  if (cluster === db.cluster) return
  const toWords = (name: string | undefined) => (name === undefined ? 'a single server' : `the cluster ${name}`)
  throw new DataError(
    'migration',
    `${db.name} was made for ${toWords(cluster)}, and CLICKHOUSE_CLUSTER says ${toWords(db.cluster)}. ` +
      'Data moves with `npm run backup` and `npm run restore` into an empty database (docs/operations.md)',
  )
}

/** A released file never changes: a database with another file of that name was made by a program before the release. */
function refuseUnreleased(
  db: Database,
  applied: ReadonlyMap<string, string>,
  released: ReadonlyMap<string, string>,
): void {
  const [early] = findUnreleased(applied, released)
  if (early === undefined) return
  throw new DataError(
    'schema_too_old',
    `${db.name} was made before the first release (its ${early} is another one) and cannot be upgraded: ` +
      'name another CLICKHOUSE_DATABASE, and collect its history with npm run backfill',
  )
}

/** The names of released files of which `applied` has another content. */
export const findUnreleased = (
  applied: ReadonlyMap<string, string>,
  released: ReadonlyMap<string, string>,
): readonly string[] =>
  [...applied].flatMap(([name, checksum]) => ((released.get(name) ?? checksum) === checksum ? [] : [name]))

/** @throws DataError `migration` when the database holds a part of a backup. */
export function refuseHalfRestored(db: Database, { restoring }: StoredSchema): void {
  if (restoring === undefined) return
  throw new DataError(
    'migration',
    `${db.name} holds a part of a backup: npm run restore with the same folder goes on, and has to end first`,
  )
}
