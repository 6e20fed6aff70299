import { z } from 'zod'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'

const version = z.object({ version: z.string(), records: z.number() })

/** Every version of the registry that was ever active, oldest first. */
export const readVersions = (db: Database) =>
  db.rows({
    name: 'versions',
    sql: 'SELECT version, records FROM registry_versions FINAL ORDER BY stored_at',
    schema: version,
  })

/** A registry without its version and activation time. */
export const withoutVersion = ({ version: _, changedAt: __, ...records }: Registry) => records
