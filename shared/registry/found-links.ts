import type { Dao } from './entities.ts'
import type { Registry } from './registry.ts'

/** Members of a DAO's record that providers may fill if the registry's files have none; by column of `daos`. */
export const LINK_FIELDS = ['website', 'twitter', 'discord', 'telegram', 'whitepaper', 'image'] as const
export type LinkField = (typeof LINK_FIELDS)[number]

/** Links to a DAO's communities. Jobs need them to count members. */
export const SOCIAL_FIELDS = ['twitter', 'discord', 'telegram'] as const satisfies readonly LinkField[]

/** The found links that are copied into DAO records, because readers of the registry need them. */
const FILLED_FIELDS = [...SOCIAL_FIELDS, 'image'] as const satisfies readonly LinkField[]

/** Links found by providers, by the DAO's key. */
export type FoundLinks = ReadonlyMap<number, Readonly<Partial<Record<LinkField, string>>>>

/** Whether the registry's files have no value for a link. A provider may have found one. */
export const hasNoOwnValue = (dao: Dao, field: LinkField): boolean =>
  dao[field] === null || dao.found?.includes(field) === true

/** Returns the registry with found links in place of missing ones. `found` of a DAO lists its found links. */
export function withFoundLinks(registry: Registry, links: FoundLinks): Registry {
  const daos = registry.daos.map((dao) => fill(dao, links.get(dao.key) ?? {}))
  return {
    ...registry,
    daos,
    daoById: new Map(daos.map((dao) => [dao.id, dao])),
    daoBySlug: new Map(daos.map((dao) => [dao.slug, dao])),
  }
}

function fill(dao: Dao, links: Readonly<Partial<Record<LinkField, string>>>): Dao {
  const found = FILLED_FIELDS.filter((field) => dao[field] === null && links[field] !== undefined)
  if (found.length === 0) return dao
  return { ...dao, ...Object.fromEntries(found.map((field) => [field, links[field] ?? null])), found }
}
