import { type Registry, toRegistry } from '../shared/registry/registry.ts'
import { type RegistrySource, readFiles, SHIPPED } from '../shared/registry/source.ts'
import type { Database } from '../shared/store/clickhouse.ts'
import { findRegistryVersion, readStoredSource } from '../shared/store/stored-registry.ts'
import type { Logger } from '../shared/telemetry/log.ts'
import { compareSources } from './registry/compare.ts'
import { compareDaos, storeDaos } from './registry/daos.ts'
import { storeRecords } from './registry/records.ts'
import { compareTokens, storeTokens } from './registry/tokens.ts'

/**
 * Puts the registry of the files in `dir` into force, the shipped ones by default. Whoever has it finds what statements
 * join to it: that is stored first.
 * @throws RegistryError, or DataError `storage`; what was in force stays.
 */
export async function putInForce(db: Database, log: Logger, dir: string = SHIPPED): Promise<void> {
  const source: RegistrySource = readFiles(dir)
  const isChanged = await storeRegistry(db, await toRegistry(source), log)
  await storeRecords(db, source, { isChanged, log })
}

/**
 * What `putInForce` would change in what whoever runs has, a line for each record; where that is nothing, in the tables that
 * statements join. Undefined where nothing was ever stored.
 * @throws RegistryError, or DataError `storage`
 */
export async function compareInForce(db: Database, dir: string = SHIPPED): Promise<string[] | undefined> {
  const files = readFiles(dir)
  const registry = await toRegistry(files)
  const stored = await findRegistryVersion(db)
  if (stored === undefined) return undefined
  const others = compareSources(await readStoredSource(db, stored), files)
  if (others.length > 0) return others
  // Those of another registry, where a migrate that was to bring it was stopped midway.
  return [...(await compareTokens(db, registry)), ...(await compareDaos(db, registry))]
}

/**
 * Brings the tables of tokens and DAOs, which statements join, in step with a registry. Only records that differ are
 * written; one that left is kept as not live, because stored series refer to it.
 * @returns whether any was written.
 */
export async function storeRegistry(db: Database, registry: Registry, log: Logger): Promise<boolean> {
  const [tokens, daos] = [await storeTokens(db, registry, log), await storeDaos(db, registry, log)]
  return tokens || daos
}
