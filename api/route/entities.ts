import { toId } from '../../shared/ids.ts'
import type { Dao, Token } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { eachName, manyIds, manyNames, nearestWord, oneId, oneName } from '../parameters/kinds.ts'
import { Problem } from '../problem/problem.ts'

/** Members of every named record of the registry. */
export interface Named {
  readonly id: string
  readonly key: number
  readonly name: string
}

/** A kind of entity that routes select by id or name. */
export interface EntityKind<E extends Named> {
  readonly noun: string
  readonly example: { readonly id: string; readonly name: string }
  all(registry: Registry): readonly E[]
  byId(registry: Registry, id: string): E | undefined
  /** The entity's symbol, if it has one. */
  symbolOf(registry: Registry, entity: E): string | undefined
  /** Slugs of the categories and of the chains that the entity belongs to. */
  categoriesOf(registry: Registry, entity: E): readonly string[]
  chainsOf(entity: E): readonly string[]
}

export const tokenKind: EntityKind<Token> = {
  noun: 'token',
  example: { id: toId('token', 'ethereum', '0x1f9840a85d5af5bf1d1762f925bdaddc4201f984'), name: 'Uniswap' },
  all: (registry) => registry.tokens,
  byId: (registry, id) => registry.tokenById.get(id),
  symbolOf: (_, token) => token.symbol,
  categoriesOf: (registry, token) => registry.daoBySlug.get(token.dao)?.categories ?? [],
  chainsOf: ({ chain }) => [chain],
}

export const daoKind: EntityKind<Dao> = {
  noun: 'DAO',
  example: { id: toId('dao', 'aave'), name: 'Aave' },
  all: (registry) => registry.daos,
  byId: (registry, id) => registry.daoById.get(id),
  symbolOf: (registry, dao) => (dao.token === null ? undefined : registry.tokenById.get(dao.token)?.symbol),
  categoriesOf: (_, dao) => dao.categories,
  chainsOf: (dao) => dao.chains,
}

/** A DAO with delegations as the example of the routes about them. */
export const delegatingDaoKind: EntityKind<Dao> = {
  ...daoKind,
  example: { id: toId('dao', 'uniswap'), name: 'Uniswap' },
}

/** A DAO with transfers of its treasury as the example of the routes about them. */
export const treasuryDaoKind: EntityKind<Dao> = {
  ...daoKind,
  example: { id: toId('dao', 'ens'), name: 'Ethereum Name Service' },
}

/** The parameters of a single-entity route. */
export const oneOfKind = <E extends Named>(kind: EntityKind<E>) => ({
  id: oneId(kind.noun, kind.example.id).optional(),
  name: oneName(kind.noun, kind.example.name).optional(),
})

/** The parameters of a route of several entities, each like `oneOfKind`. */
export const eachOfKind = <E extends Named>(kind: EntityKind<E>) => ({
  id: manyIds(`${kind.noun}s`, kind.example.id),
  name: eachName(`${kind.noun}s`, kind.example.name),
})

/** The selection parameters of a list route. */
export const manyOfKind = <E extends Named>(kind: EntityKind<E>) => ({
  id: manyIds(`${kind.noun}s`, kind.example.id),
  name: manyNames(`${kind.noun}s`, kind.example.name),
})

const MAX_CANDIDATES = 20
const fold = (text: string) => text.toLowerCase()

function findByName<E extends Named>(kind: EntityKind<E>, registry: Registry, name: string): E {
  const folded = fold(name)
  const exact = kind.all(registry).filter((entity) => fold(entity.name) === folded)
  const found = exact.length > 0 ? exact : kind.all(registry).filter((entity) => fold(entity.name).includes(folded))
  const [first, second] = found
  if (first === undefined) throw new Problem('not_found', `There is no ${kind.noun} with this name.`, { param: 'name' })
  if (second === undefined) return first
  throw new Problem('ambiguous_name', `${found.length} ${kind.noun}s have this name: ask by id.`, {
    param: 'name',
    candidates: found.slice(0, MAX_CANDIDATES).map((entity) => ({ id: entity.id, name: entity.name })),
  })
}

/**
 * The one entity that `id` or `name` selects, live or not (docs/contract.md, sections 2 and 3).
 * @throws Problem `missing_parameter`, `not_found`, `ambiguous_name`, or `invalid_parameter` when the two differ.
 */
export function findOne<E extends Named>(
  kind: EntityKind<E>,
  registry: Registry,
  query: { id?: string | undefined; name?: string | undefined },
): E {
  if (query.id === undefined && query.name === undefined) {
    throw new Problem('missing_parameter', `Give the ${kind.noun}'s id or its name.`, {
      param: 'id',
      allowed: ['id', 'name'],
    })
  }
  const byId = query.id === undefined ? undefined : kind.byId(registry, query.id)
  if (query.id !== undefined && byId === undefined) {
    throw new Problem('not_found', `There is no ${kind.noun} with this id.`, { param: 'id' })
  }
  const byName = query.name === undefined ? undefined : findByName(kind, registry, query.name)
  if (byId && byName && byId.id !== byName.id) {
    throw new Problem('invalid_parameter', `id and name mean different ${kind.noun}s.`, { param: 'name' })
  }
  return (byId ?? byName) as E
}

/**
 * The entities that ids and names select, live or not, without duplicates and ordered by id.
 * @throws Problem as `findOne` for each of them.
 */
export function findEach<E extends Named>(
  kind: EntityKind<E>,
  registry: Registry,
  query: { id?: readonly string[] | undefined; name?: readonly string[] | undefined },
): readonly E[] {
  const { id: ids = [], name: names = [] } = query
  if (ids.length + names.length === 0) return [findOne(kind, registry, {})]
  const found = [
    ...ids.map((id) => findOne(kind, registry, { id })),
    ...names.map((name) => findOne(kind, registry, { name })),
  ]
  return [...new Set(found)].sort((a, b) => a.key - b.key)
}

/** The records that a list request selects, by their integer keys in ClickHouse. */
export type Selection = {
  /** No selection: every live record. */
  readonly all: boolean
  readonly keys: readonly number[]
  /** Records with exactly a requested name: they come first. */
  readonly exact: readonly number[]
}

/** The selection parameters of a list request. */
export interface ListQueryOfEntities {
  readonly id?: readonly string[] | undefined
  readonly name?: readonly string[] | undefined
  readonly category?: readonly string[] | undefined
  readonly chain?: readonly string[] | undefined
}

const ID = /^[0-9a-f]{24}$/

/**
 * The slugs for ids or slugs; an unknown id selects none.
 * @throws Problem `invalid_parameter` for an unknown slug.
 */
export function findSlugs(param: string, values: readonly string[], records: readonly { id: string; slug: string }[]) {
  return new Set(
    values.flatMap((text) => {
      const found = records.find(({ id, slug }) => id === text || slug === text)
      if (found !== undefined) return [found.slug]
      if (ID.test(text)) return []
      const slugs = records.map(({ slug }) => slug)
      const nearest = nearestWord(text, slugs)
      const hint = nearest === undefined ? '' : ` Did you mean "${nearest}"?`
      throw new Problem('invalid_parameter', `There is no ${param} "${text.slice(0, 60)}".${hint}`, {
        param,
        allowed: slugs,
      })
    }),
  )
}

/** Whether an entity belongs to at least one requested category and one requested chain. */
function toMembership<E extends Named>(
  kind: EntityKind<E>,
  registry: Registry,
  { category, chain }: ListQueryOfEntities,
) {
  const categories = category && findSlugs('category', category, registry.categories)
  const chains = chain && findSlugs('chain', chain, registry.chains)
  const isAny = (slugs: readonly string[], of: ReadonlySet<string> | undefined) =>
    of === undefined || slugs.some((slug) => of.has(slug))
  return (entity: E) => isAny(kind.categoriesOf(registry, entity), categories) && isAny(kind.chainsOf(entity), chains)
}

/**
 * The records that ids and names of a list request select, with either (docs/contract.md, sections 2 and 3). A name
 * matches a part of the name or the complete symbol; unknown ids and names select nothing. The result is limited to the
 * requested categories and chains (docs/contract.md, section 8).
 */
export function selectMany<E extends Named>(
  kind: EntityKind<E>,
  registry: Registry,
  query: ListQueryOfEntities,
): Selection {
  const isNamed = query.id !== undefined || query.name !== undefined
  if (!isNamed && query.category === undefined && query.chain === undefined) return { all: true, keys: [], exact: [] }
  const ids = new Set(query.id)
  const names = (query.name ?? []).map(fold)
  const fits = (entity: E) => {
    const [name, symbol] = [fold(entity.name), fold(kind.symbolOf(registry, entity) ?? '')]
    return names.some((requestedName) => name.includes(requestedName) || symbol === requestedName)
  }
  const belongs = toMembership(kind, registry, query)
  const found = kind
    .all(registry)
    .filter((entity) => belongs(entity) && (!isNamed || ids.has(entity.id) || fits(entity)))
  const exact = found.filter((entity) => names.includes(fold(entity.name)))
  return { all: false, keys: found.map((entity) => entity.key), exact: exact.map((entity) => entity.key) }
}
