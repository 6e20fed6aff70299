import { z } from 'zod'
import type { Database } from './clickhouse.ts'

const counted = z.object({ rows: z.int() })

/** Counts the rows of a table after replacing. */
export async function countRows(db: Database, table: string): Promise<number> {
  const sql = `SELECT count() AS rows FROM ${table} FINAL`
  const [row] = await db.rows({ name: 'count-rows', sql, schema: counted })
  return row?.rows ?? 0
}
