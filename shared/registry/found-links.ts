import type { Dao } from './entities.ts'
import type { Registry } from './registry.ts'

/** What providers may fill in a DAO's record, where the registry's files leave it empty; by column of `daos`. */
export const LINK_FIELDS = ['website', 'twitter', 'discord', 'telegram', 'whitepaper', 'image'] as const
export type LinkField = (typeof LINK_FIELDS)[number]

/** The links that lead to a DAO's people, which jobs need to count them. */
export const SOCIAL_FIELDS = ['twitter', 'discord', 'telegram'] as const satisfies readonly LinkField[]

/** What is filled in of what was found: who reads a record of the registry needs these. */
const FILLED_FIELDS = [...SOCIAL_FIELDS, 'image'] as const satisfies readonly LinkField[]

/** What providers found of DAOs' links, by the DAO's key. */
export type FoundLinks = ReadonlyMap<number, Readonly<Partial<Record<LinkField, string>>>>

/** Whether the registry's files leave a link empty; it may have been found since. */
export const isLeftEmpty = (dao: Dao, field: LinkField): boolean =>
  dao[field] === null || dao.found?.includes(field) === true

/** The registry with found links where its files have none. Each such DAO says which of its links are found. */
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
