import type { Registry } from '../shared/registry/registry.ts'
import type { Database } from '../shared/store/clickhouse.ts'
import type { Logger } from '../shared/telemetry/log.ts'
import { storeDaos } from './registry/daos.ts'
import { storeTokens } from './registry/tokens.ts'

/**
 * Brings the tables of the registry's records in step with its files. Only records that differ are written; one that
 * left the files is kept as not live, because stored series refer to it.
 */
export async function storeRegistry(db: Database, registry: Registry, log: Logger): Promise<void> {
  await storeTokens(db, registry, log)
  await storeDaos(db, registry, log)
}
