import { DataError } from '../../shared/errors.ts'
import type { Database } from '../../shared/store/store.ts'
import { loadMigrations, type Migration } from '../migrations.ts'
import { loadReleased } from '../schema/released.ts'
import { findUnreleased } from '../schema/stored.ts'
import type { Manifest } from './files.ts'

/** The migrations relative to a backup. */
export interface SchemaOf {
  /** The migrations of the backed-up database. */
  readonly own: readonly Migration[]
  /** Migrations after the backup. */
  readonly later: readonly Migration[]
  readonly released: ReadonlyMap<string, string>
}

/**
 * Compares a backup's schema with this program's migrations.
 * @throws DataError `schema_too_old` for a backup from before the first release, `migration` for one of a newer program
 * or with unreleased files, `storage` if a table of its schema is missing.
 */
export function toSchemaOf({ migrations, tables }: Manifest, from?: string): SchemaOf {
  const released = loadReleased(from)
  const checksums = new Map(migrations.map(({ name, checksum }) => [name, checksum]))
  const [early] = findUnreleased(checksums, released)
  if (early !== undefined) {
    const reason = `the backup was made before the first release (its ${early} differs)`
    throw new DataError('schema_too_old', `${reason} and cannot be restored: collect its history with npm run backfill`)
  }
  const shipped = loadMigrations(from)
  const unknown = migrations.filter((one) => !shipped.some(({ name }) => name === one.name)).map(({ name }) => name)
  if (unknown.length > 0)
    throw new DataError(
      'migration',
      `the backup is of a newer program, which has ${unknown.join(', ')}: restore with that`,
    )
  const edited = shipped
    .filter(({ name, checksum }) => (checksums.get(name) ?? checksum) !== checksum)
    .map(({ name }) => name)
  if (edited.length > 0)
    throw new DataError('migration', `the backup has an unreleased schema: its ${edited.join(', ')} differs`)
  const own = shipped.filter(({ name }) => checksums.has(name))
  const lacking = toTables(own).filter((table) => !tables.some(({ name }) => name === table))
  if (lacking.length > 0)
    throw new DataError(
      'storage',
      `the backup is damaged: its manifest lacks the tables ${lacking.join(', ')}, which its schema has: restore another backup`,
    )
  return {
    own,
    later: shipped.filter(({ name }) => !checksums.has(name)),
    released,
  }
}

/** The tables with rows that exist after the migrations. */
function toTables(migrations: readonly Migration[]): string[] {
  const tables = new Set<string>()
  for (const statement of migrations.flatMap(({ statements }) => statements)) {
    const [, created] =
      /^CREATE TABLE IF NOT EXISTS (\w+)[\s\S]*^ENGINE = \{engine\}\w*MergeTree/m.exec(statement) ?? []
    const [, dropped] = /^DROP TABLE IF EXISTS (\w+)/m.exec(statement) ?? []
    if (created !== undefined) tables.add(created)
    if (dropped !== undefined) tables.delete(dropped)
  }
  return [...tables]
}

/**
 * @throws DataError `migration` if the database has migrations that the backup lacks, because its rows have another
 * shape.
 */
export function refuseLater(db: Database, own: readonly Migration[], applied: ReadonlyMap<string, string>): void {
  const later = [...applied.keys()].filter((name) => !own.some((one) => one.name === name))
  if (later.length === 0) return
  throw new DataError(
    'migration',
    `${db.name} has ${later.join(', ')}, which the backup is older than: restore it into a new CLICKHOUSE_DATABASE, ` +
      'which is upgraded then',
  )
}
