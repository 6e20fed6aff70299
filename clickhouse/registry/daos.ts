import { z } from 'zod'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Logger } from '../../shared/telemetry/log.ts'

/** A DAO according to the registry's files. */
const curated = z.object({
  key: z.number(),
  id: z.string(),
  slug: z.string(),
  name: z.string(),
  image: z.string().nullable(),
  category_ids: z.array(z.string()),
  mission: z.string(),
  website: z.string().nullable(),
  twitter: z.string().nullable(),
  discord: z.string().nullable(),
  telegram: z.string().nullable(),
  whitepaper: z.string().nullable(),
  tokenomics: z.string().nullable(),
  chain_ids: z.array(z.string()),
  token_key: z.number().nullable(),
  live: z.boolean(),
  twitter_id: z.string().nullable(),
  verified: z.boolean(),
  description: z.string(),
  is_otc: z.boolean(),
  snapshot_name: z.string().nullable(),
  treasury_addresses: z.array(z.string()),
})

const storedDao = curated.extend({
  links: z.record(z.string(), z.string()),
  created_at: z.string(),
  changes: z.number(),
})

type Curated = z.infer<typeof curated>
type StoredDao = z.infer<typeof storedDao>

/** Limit on rounds. A concurrent process may write the same record, so each round compares again. */
const MOST_ROUNDS = 3

/**
 * Updates the `daos` table to the registry's files. `created_at` of a record is the time of its first insert,
 * `updated_at` of its last change, `changes` the number of changes. A link in the files replaces a found one.
 */
export async function storeDaos(db: Database, registry: Registry, log: Logger): Promise<boolean> {
  const records = registry.daos.map((dao) => toCurated(dao, registry))
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const changed = toChanged(records, await readDaos(db), new Date().toISOString())
    if (changed.length === 0) return round > 0
    await db.insert({ table: 'daos', rows: changed })
    log.info({ daos: records.length, changed: changed.length }, 'DAOs of the registry stored')
  }
  return true
}

/** Returns the records of the `daos` table that differ from the registry, a line each. */
export async function compareDaos(db: Database, registry: Registry): Promise<string[]> {
  const curatedRecords = registry.daos.map((dao) => toCurated(dao, registry))
  const changed = toChanged(curatedRecords, await readDaos(db), new Date().toISOString())
  return changed.map(({ slug }) => `daos: ${slug} differs in the table`)
}

function readDaos(db: Database): Promise<StoredDao[]> {
  const columns = Object.keys(storedDao.shape).join(', ')
  return db.rows({ name: 'stored-daos', sql: `SELECT ${columns} FROM daos FINAL`, schema: storedDao })
}

/** The records to write to turn the stored state into the wanted one; empty if they are equal. */
function toChanged(expected: readonly Curated[], stored: readonly StoredDao[], now: string) {
  const storedByKey = new Map(stored.map((record) => [record.key, record]))
  const registryKeys = new Set(expected.map(({ key }) => key))
  const gone = stored.filter(({ key, live }) => live && !registryKeys.has(key)).map((dao) => ({ ...dao, live: false }))
  return [...expected, ...gone].flatMap((record) => {
    const before = storedByKey.get(record.key)
    if (before === undefined) return [{ ...record, links: {}, created_at: now, updated_at: now, changes: 0 }]
    const after = { ...before, ...record, links: toEmptyFieldsOnly(before.links, record) }
    if (JSON.stringify(after) === JSON.stringify(before)) return []
    return [{ ...after, updated_at: now, changes: before.changes + 1 }]
  })
}

/** Removes links for which the record has its own value. */
function toEmptyFieldsOnly(links: StoredDao['links'], record: Curated): StoredDao['links'] {
  const own: Readonly<Record<string, unknown>> = record
  return Object.fromEntries(Object.entries(links).filter(([field]) => own[field] === null))
}

function toCurated(dao: Dao, registry: Registry): Curated {
  const token = dao.token === null ? undefined : registry.tokenById.get(dao.token)
  return {
    key: dao.key,
    id: dao.id,
    slug: dao.slug,
    name: dao.name,
    image: dao.image,
    category_ids: toIds(dao.categories, registry.categoryBySlug),
    mission: dao.mission,
    website: dao.website,
    twitter: dao.twitter,
    discord: dao.discord,
    telegram: dao.telegram,
    whitepaper: dao.whitepaper,
    tokenomics: dao.tokenomics,
    chain_ids: toIds(dao.chains, registry.chainBySlug),
    token_key: token?.key ?? null,
    live: dao.live,
    twitter_id: dao.twitterId,
    verified: dao.verified,
    description: dao.description,
    is_otc: dao.isOtc,
    snapshot_name: dao.snapshotSpace,
    treasury_addresses: [...new Set(dao.treasuries.map(({ address }) => address))],
  }
}

function toIds(slugs: readonly string[], bySlug: ReadonlyMap<string, { readonly id: string }>): string[] {
  return slugs.map((slug) => {
    const found = bySlug.get(slug)
    if (found === undefined) throw new Error(`${slug}: the registry was not validated`)
    return found.id
  })
}
