import { z } from 'zod'
import type { Database } from '../../shared/store/store.ts'

/**
 * Compares the tables and columns of the database with those that the migration files create in an empty one.
 * @returns a line per difference; none if the schemas are equal.
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
  const [actual, expected] = [await columns(db, database), await columns(scratch, scratchName)]
  return [
    ...[...expected].filter((column) => !actual.has(column)).map((column) => `missing: ${column}`),
    ...[...actual].filter((column) => !expected.has(column)).map((column) => `unexpected: ${column}`),
  ]
}
