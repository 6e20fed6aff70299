import { text } from 'node:stream/consumers'
import type { Database } from './clickhouse.ts'

/**
 * Checks that ClickHouse responds, with a statement that reads no data. Uses a long connection, so that the result does
 * not depend on the load of the other pool. Returns the rows as JSON lines.
 * @throws DataError `storage` if it refuses or does not respond before the signal is aborted.
 */
export async function probe(db: Database, options: { sql?: string; signal?: AbortSignal } = {}): Promise<string> {
  return text(await db.stream({ name: 'ready', sql: 'SELECT 1', isLong: true, ...options }))
}
