import { text } from 'node:stream/consumers'
import type { Database } from './clickhouse.ts'

/**
 * Asks ClickHouse something that reads nothing, on a connection that no other statement holds up: what is wanted is
 * whether it answers, not how much it has to do. Returns the rows as JSON, one a line.
 * @throws DataError `storage` when it refuses, or has not answered when the signal is aborted.
 */
export async function probe(db: Database, options: { sql?: string; signal?: AbortSignal } = {}): Promise<string> {
  return text(await db.stream({ name: 'ready', sql: 'SELECT 1', isLong: true, ...options }))
}
