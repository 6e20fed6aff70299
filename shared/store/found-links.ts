import { z } from 'zod'
import type { FoundLinks } from '../registry/found-links.ts'
import type { Database } from './clickhouse.ts'

const linked = z.object({ key: z.number(), links: z.record(z.string(), z.string()) })

/**
 * Reads the found links of DAOs.
 * @throws DataError `storage`
 */
export async function readFoundLinks(db: Database): Promise<FoundLinks> {
  const sql = 'SELECT key, links FROM daos FINAL WHERE live AND notEmpty(links)'
  const rows = await db.rows({ name: 'found-links', sql, schema: linked })
  return new Map(rows.map(({ key, links }) => [key, links]))
}
