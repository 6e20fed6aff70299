import type { Registry } from '../../shared/registry/registry.ts'
import { FIRING_ONCE, type Rule, type What } from './rules.ts'
import { LISTS, SERIES, type Subject } from './series.ts'

/** The kind of entity that a rule is about. */
function toSubject(condition: What): Subject {
  if (condition.kind === 'level' || condition.kind === 'move') return SERIES[condition.series].of
  if (condition.kind === 'list') return LISTS[condition.list].of
  return FIRING_ONCE.includes(condition.kind) ? 'dao' : 'none'
}

/** A token or a DAO that a rule is about. */
export interface AlertEntity {
  readonly type: 'token' | 'dao'
  readonly id: string
  readonly key: number
  readonly name: string
}

const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase()

const foundEntities = new WeakMap<Rule, { readonly version: string; readonly entities: readonly AlertEntity[] }>()

/**
 * Returns the live entities that a rule selects, by id, name or category; the symbol of a token and the slug of a DAO
 * count as names. Undefined for a rule without entities.
 */
export function findEntities(one: Rule, registry: Registry): readonly AlertEntity[] | undefined {
  const type = toSubject(one.what)
  if (type === 'none') return undefined
  // Thousands of rules are evaluated every few minutes, and the registry rarely changes.
  const { version } = registry
  const found = foundEntities.get(one)
  if (found?.version === version) return found.entities
  const entities = selectEntities(type, one.who, registry)
  foundEntities.set(one, { version, entities })
  return entities
}

function selectEntities(type: 'token' | 'dao', who: Rule['who'], registry: Registry): readonly AlertEntity[] {
  const all =
    type === 'token'
      ? registry.tokens.flatMap((token) => {
          const categories = registry.daoBySlug.get(token.dao)?.categories ?? []
          return token.live ? [{ entity: token, names: [token.name, token.symbol], categories }] : []
        })
      : registry.daos.flatMap((dao) =>
          dao.live ? [{ entity: dao, names: [dao.name, dao.slug], categories: dao.categories }] : [],
        )
  const selected =
    who === 'all'
      ? all
      : all.filter(
          ({ entity, names, categories }) =>
            who.ids?.includes(entity.id) ||
            who.names?.some((wanted) => names.some((one) => isSame(one, wanted))) ||
            who.categories?.some((wanted) => categories.includes(wanted)),
        )
  return selected.map(({ entity: { id, key, name: shown } }) => ({ type, id, key, name: shown }))
}

/** Returns the ids, names and categories of a rule that match nothing in the registry, as messages. */
export function findUnknown(one: Rule, registry: Registry): string[] {
  if (one.who === 'all') return []
  const matches = (who: Rule['who']) => (findEntities({ ...one, who }, registry)?.length ?? 0) > 0
  return Object.entries(one.who).flatMap(([member, values]) =>
    (values ?? []).flatMap((value) =>
      matches({ [member]: [value] })
        ? []
        : [`rule ${one.name}: who.${member}: nothing live matches ${JSON.stringify(value)}`],
    ),
  )
}
