import type { z } from 'zod'
import { exampleOf, isRequired, takesSeveral } from '../parameters/parse.ts'
import type { Route } from '../route/define-route.ts'
import { isTried } from './operation.ts'
import type { Json } from './shape.ts'

/** Parameters of the target by name: a runtime expression of OpenAPI, or a value. */
type Given = Readonly<Record<string, unknown>>

/** A link from an answer to the operation that has details of it. */
interface Link {
  readonly to: string
  readonly given: Given
}

const body = (pointer: string) => `$response.body#/${pointer}`

/** Operations about the value of a member, by the parameter that takes it. Records have the same meaning for a name everywhere. */
const BY_MEMBER: Readonly<Record<string, readonly (readonly [operation: string, parameter: string])[]>> = {
  dao: [['getDaoProfile', 'id']],
  token: [['getTokenProfile', 'id']],
  voter: [['listVoterDaos', 'address']],
  delegate: [['listVoterDaos', 'address']],
  rule: [
    ['listAlerts', 'rule'],
    ['getAtomFeed', 'rule'],
    ['getJsonFeed', 'rule'],
  ],
}

/** Links that need several members, or a member of an inner record. */
const OTHERS: Readonly<Record<string, readonly Link[]>> = {
  listDaoProposals: [
    { to: 'listDaoVotes', given: { id: body('0/dao'), proposal: body('0/_id') } },
    { to: 'listProposalActions', given: { proposal: body('0/_id') } },
  ],
  listDaoDelegates: [{ to: 'getDelegateHistory', given: { id: body('0/dao'), address: body('0/delegate') } }],
  listTokens: [
    { to: 'search', given: { q: body('0/name') } },
    { to: 'getTokenChart', given: { tokenId: body('0/_id') } },
    { to: 'getMark', given: { markOf: body('0/_id') } },
    { to: 'listChanges', given: { id: body('0/_id') } },
    { to: 'getCoverage', given: { id: body('0/_id'), dataset: 'prices' } },
    { to: 'getBasketHistory', given: { of: body('0/_id') } },
    { to: 'getBasketReport', given: { of: body('0/_id') } },
  ],
  listTokenHolders: [{ to: 'getProvenance', given: { id: body('0/_id'), dataset: 'holders' } }],
  getProvenance: [{ to: 'getProvenanceRaw', given: { hash: body('answers/0/sha256') } }],
}

/** The start of a walk: it links to all operations that need no parameters. */
const ENTRY = 'getStatus'

const isAbout = (route: Route, noun: string) => route.one?.noun === noun

/** The kind of entities that a list has as its records; lists of a tag select them by id. */
function findListed({ tag, query, record }: Route): string | undefined {
  if (query.id === undefined || !takesSeveral(query.id) || record?.shape._id === undefined) return undefined
  return { Tokens: 'token', DAOs: 'DAO' }[tag]
}

/** From a list to the profiles; from the main list of a kind and from a profile to all operations about the entity. */
function linkEntities(route: Route, routes: readonly Route[]): readonly Link[] {
  const isProfile = route.operation === 'getTokenProfile' || route.operation === 'getDaoProfile'
  const noun = isProfile ? route.one?.noun : findListed(route)
  if (noun === undefined) return []
  const isMain = isProfile || route.operation === 'listTokens' || route.operation === 'listDaos'
  const profile = noun === 'token' ? 'getTokenProfile' : 'getDaoProfile'
  const targets = routes.filter((other) => isAbout(other, noun) && other !== route)
  const given = { id: body(isProfile ? '_id' : '0/_id') }
  return targets
    .filter(({ operation, query }) => operation === profile || (isMain && !needsMore(query)))
    .map(({ operation }) => ({ to: operation, given }))
}

/** Whether an operation about an entity needs another id too. */
const needsMore = (query: Route['query']) =>
  ['proposal', 'address', 'dataset'].some((name) => name in query && isRequired(query[name] as z.ZodType))

function linkMembers({ operation, record }: Route): readonly Link[] {
  return Object.keys(record?.shape ?? {}).flatMap((name) =>
    (BY_MEMBER[name] ?? [])
      .filter(([to]) => to !== operation)
      .map(([to, parameter]) => ({ to, given: { [parameter]: body(`0/${name}`) } })),
  )
}

const linkEntry = (route: Route, routes: readonly Route[]): readonly Link[] =>
  route.operation === ENTRY
    ? routes
        .filter((other) => other !== route && !other.isEndless && needsNothing(other))
        .map(({ operation }) => ({ to: operation, given: {} }))
    : []

const needsNothing = (route: Route) =>
  !route.path.includes('{') &&
  Object.entries(route.query).every(
    ([name, schema]) => !isRequired(schema as z.ZodType) && (name === 'limit' || !isTried(route, name)),
  )

/** The parameters of a first request that the link does not give: an interval, a start, a limit. */
function withNeeded(target: Route, given: Given): Given {
  const needed = Object.entries(target.query)
    .filter(([name]) => name !== 'name' && name !== 'id' && !(name in given) && isTried(target, name))
    .map(([name, schema]) => [name, exampleOf(schema as z.ZodType)])
  return { ...given, ...Object.fromEntries(needed) }
}

/** The links of a route's answers, by names that are unique in it. */
export function toLinks(route: Route, routes: readonly Route[]): Json {
  const all = [
    ...(OTHERS[route.operation] ?? []),
    ...linkEntities(route, routes),
    ...linkMembers(route),
    ...linkEntry(route, routes),
  ]
  const links: Record<string, Json> = {}
  for (const { to, given } of all) {
    const target = routes.find(({ operation }) => operation === to)
    if (target === undefined || to in links) continue
    const parameters = withNeeded(target, given)
    links[to] = {
      operationId: to,
      description: `${target.summary}.`,
      ...(Object.keys(parameters).length === 0 ? {} : { parameters }),
    }
  }
  return links
}
