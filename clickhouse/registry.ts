import { type Registry, toRegistry } from '../shared/registry/registry.ts'
import { type RegistrySource, readFiles, SHIPPED } from '../shared/registry/source.ts'
import { type Database, findRegistryVersion, readStoredSource } from '../shared/store/store.ts'
import type { Logger } from '../shared/telemetry/log.ts'
import { compareSources } from './registry/compare.ts'
import { compareDaos, storeDaos } from './registry/daos.ts'
import { storeRecords, toStoredVersion } from './registry/records.ts'
import { compareTokens, storeTokens } from './registry/tokens.ts'

/**
 * Activates the registry of the files in `dir`, by default the shipped ones. Writes the tables that statements join
 * before the version, so that processes with the new version find them updated.
 * @throws RegistryError, or DataError `storage`; the previous registry then stays active.
 */
export async function putInForce(db: Database, log: Logger, dir: string = SHIPPED): Promise<void> {
  const source: RegistrySource = readFiles(dir)
  const isChanged = await storeRegistry(db, await toRegistry(source), log)
  await storeRecords(db, source, { isChanged, log })
}

/**
 * Returns the changes that `putInForce` would make, a line per record: differences to the active registry, or if there
 * are none, differences in the joined tables. Undefined if no registry was ever stored.
 * @throws RegistryError, or DataError `storage`
 */
export async function compareInForce(db: Database, dir: string = SHIPPED): Promise<string[] | undefined> {
  const files = readFiles(dir)
  const registry = await toRegistry(files)
  const stored = await findRegistryVersion(db)
  if (stored === undefined) return undefined
  const differences = compareSources(await readStoredSource(db, stored), files)
  if (differences.length > 0) return differences
  if (toStoredVersion(files) !== stored.version)
    return ['equal records that are stored with other members or in another form']
  // The tables may belong to another registry, if its migrate run was interrupted.
  return [...(await compareTokens(db, registry)), ...(await compareDaos(db, registry))]
}

/**
 * Updates the tables of tokens and DAOs, which statements join, to a registry. Writes only different records. Removed
 * records are marked as not live, because stored series refer to them.
 * @returns whether any record was written.
 */
export async function storeRegistry(db: Database, registry: Registry, log: Logger): Promise<boolean> {
  const [tokens, daos] = [await storeTokens(db, registry, log), await storeDaos(db, registry, log)]
  return tokens || daos
}
