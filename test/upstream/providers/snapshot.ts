import { jsonReply, type Provider, type Reply } from '../exchange.ts'
import { GraphqlMistake, parseQuery, type QueryField } from '../graphql.ts'
import type { Space, SpaceProposal, SpaceVote, World } from '../world.ts'

/** The rejected key; none, or any other, is accepted. */
export const INVALID_KEY = 'invalid'

const MOST_ROOT_FIELDS = 5
const MOST_DEPTH = 5
const MOST_FIRST = 1000
const MOST_SKIP = 5000
const MOST_IN = 100
const PER_MINUTE = 100

/** The Snapshot hub's GraphQL. Source: docs/providers.md, section 9. */
export const snapshot: Provider = {
  name: 'snapshot',
  handle(request, world) {
    if (request.path !== '/graphql') return jsonReply({ error: 'not_found' }, 404)
    if (request.headers['x-api-key'] === INVALID_KEY) return failure(401)
    if (request.method !== 'POST') return jsonReply({ errors: [{ message: 'Must provide query string.' }] }, 400)
    return withLimits(answer(request.body, world, request.now))
  },
  failure,
  empty: () => jsonReply({ data: { space: null, proposals: [], votes: [] } }),
}

function failure(status: number): Reply {
  if (status === 401) return jsonReply({ error: 'unauthorized', error_description: 'invalid api key' }, 401)
  const says = 'too many requests, refer to https://docs.snapshot.box/tools/api/api-keys#limits'
  if (status !== 429) return jsonReply({ errors: [{ message: 'request failed' }], data: null }, status)
  const reply = jsonReply({ error: 'unauthorized', error_description: says }, 429)
  const limits = { 'ratelimit-limit': String(PER_MINUTE), 'ratelimit-remaining': '0', 'ratelimit-reset': '1' }
  return { ...reply, headers: { ...reply.headers, ...limits, 'retry-after': '1' } }
}

function withLimits(reply: Reply): Reply {
  const limits = { 'ratelimit-limit': String(PER_MINUTE), 'ratelimit-remaining': String(PER_MINUTE - 1) }
  return { ...reply, headers: { ...reply.headers, ...limits, 'ratelimit-reset': '60' } }
}

function answer(body: string, world: World, now: number): Reply {
  try {
    const { query = '', variables = {} } = JSON.parse(body) as { query?: string; variables?: Record<string, unknown> }
    const fields = parseQuery(query, variables)
    if (fields.length > MOST_ROOT_FIELDS) throw new GraphqlMistake(`too many root fields: at most ${MOST_ROOT_FIELDS}`)
    if (depthOf(fields) > MOST_DEPTH) throw new GraphqlMistake(`exceeds maximum operation depth of ${MOST_DEPTH}`)
    return resolveAll(fields, world, now)
  } catch (error) {
    if (!(error instanceof GraphqlMistake || error instanceof SyntaxError)) throw error
    return jsonReply({ errors: [{ message: error.message }] }, 400)
  }
}

function depthOf(fields: readonly QueryField[]): number {
  return Math.max(0, ...fields.map((field) => 1 + depthOf(field.fields)))
}

/** A field beyond the hub's limits is null, with an error beside the data and status 200. */
function resolveAll(fields: readonly QueryField[], world: World, now: number): Reply {
  const data: Record<string, unknown> = {}
  const errors: object[] = []
  for (const field of fields) {
    const breach = findBreach(field.args)
    if (breach !== null) errors.push({ message: breach, locations: [{ line: 1, column: 1 }], path: [field.name] })
    const value = breach === null ? resolve(field, world, now) : null
    data[field.name] = Array.isArray(value) ? toInts(value, field, errors) : value
  }
  return jsonReply(errors.length > 0 ? { errors, data } : { data })
}

/** The hub's times have GraphQL's type Int: an element with a larger one is null, with an error beside the data. */
function toInts(elements: readonly Record<string, unknown>[], field: QueryField, errors: object[]) {
  return elements.map((element, index) => {
    const large = INTS.find((name) => name in element && Number(element[name]) !== (Number(element[name]) | 0))
    if (large === undefined) return element
    const message = `Int cannot represent non 32-bit signed integer value: ${element[large]}`
    errors.push({ message, path: [field.name, index, large] })
    return null
  })
}

const INTS = ['created', 'updated', 'start', 'end']

function findBreach({ first = 20, skip = 0, where = {} }: QueryField['args']): string | null {
  if (Number(first) > MOST_FIRST) return `The \`first\` argument must not be greater than ${MOST_FIRST}`
  if (Number(skip) > MOST_SKIP) return `The \`skip\` argument must not be greater than ${MOST_SKIP}`
  for (const [name, value] of Object.entries(where as object)) {
    const isTooLong = name.endsWith('_in') && Array.isArray(value) && value.length > MOST_IN
    if (isTooLong) return `The \`${name}\` argument must not have more than ${MOST_IN} elements`
  }
  return null
}

function resolve({ name, args, fields }: QueryField, world: World, now: number): unknown {
  if (name === 'space') {
    const space = world.space(String(args.id), now)
    return space && pick(toSpace(space), fields)
  }
  if (name === 'spaces') {
    const { id_in: ids = [] } = (args.where ?? {}) as { readonly id_in?: readonly unknown[] }
    const found = ids.flatMap((id) => world.space(String(id), now) ?? [])
    return found.slice(0, Number(args.first ?? 20)).map((space) => pick(toSpace(space), fields))
  }
  if (name !== 'votes' && name !== 'proposals') {
    throw new GraphqlMistake(`Cannot query field "${name}" on type "Query".`)
  }
  const where = (args.where ?? {}) as Record<string, unknown>
  const ids: unknown[] = Array.isArray(where.space_in) ? where.space_in : [where.space]
  // The hub ignores filters with the value 0.
  const from = Number(where.created_gte ?? 0) || Number.NEGATIVE_INFINITY
  const to = Number(where.created_lte ?? 0) || Number.POSITIVE_INFINITY
  const wanted = Array.isArray(where.id_in) ? new Set<unknown>(where.id_in) : undefined
  const isSelected = ({ id, created }: { readonly id: string; readonly created: number }) =>
    created >= from && created <= to && (wanted?.has(id) ?? true)
  const elements = ids.flatMap((id): readonly Element[] => {
    const space = world.space(String(id), now)
    if (space === null) return []
    if (name === 'votes')
      return space.votes
        .filter(isSelected)
        .map((one) => ({ ...toPosition(one), vp: one.power, toJson: () => toVote(space, one) }))
    return space.proposals
      .filter(isSelected)
      .map((one) => ({ ...toPosition(one), vp: 0, toJson: () => toProposal(space, one) }))
  })
  return toPage(elements, args).map(({ toJson }) => pick(toJson(), fields))
}

/** The sort keys of an element. */
interface Element {
  readonly id: string
  readonly created: number
  readonly vp: number
  toJson(): object
}

const toPosition = ({ id, created }: Pick<Element, 'id' | 'created'>) => ({ id, created })

/** Equal elements are sorted by id in both directions. */
function toPage(elements: readonly Element[], args: QueryField['args']) {
  const { first = 20, skip = 0, orderBy = 'created', orderDirection = 'desc' } = args
  const sign = orderDirection === 'asc' ? 1 : -1
  const by = orderBy === 'vp' ? 'vp' : 'created'
  const sorted = elements.toSorted((a, b) => sign * (a[by] - b[by]) || (a.id < b.id ? -1 : 1))
  return sorted.slice(Number(skip), Number(skip) + Number(first))
}

function toSpace({ id, name, proposals, votes }: Space) {
  return { id, name, network: '1', symbol: '', proposalsCount: proposals.length, votesCount: votes.length }
}

function toProposal({ id }: Space, { scoresTotal, scoresState, flagged = false, ...proposal }: SpaceProposal) {
  return {
    ...proposal,
    scores_total: scoresTotal,
    scores_state: scoresState ?? null,
    flagged,
    body: proposal.body ?? null,
    updated: proposal.updated ?? null,
    link: proposal.link ?? `https://snapshot.box/#/s:${id}/proposal/${proposal.id}`,
    vp: 0,
    space: { id },
  }
}

const toVote = ({ id }: Space, { proposal, power, ...vote }: SpaceVote) => ({
  ...vote,
  proposal: { id: proposal },
  vp: power,
  space: { id },
})

/** Returns the requested fields only. */
function pick(value: object, fields: readonly QueryField[]): Record<string, unknown> {
  const members: Readonly<Record<string, unknown>> = { ...value }
  return Object.fromEntries(
    fields.map(({ name, fields: inner }) => {
      if (!(name in members)) throw new GraphqlMistake(`Cannot query field "${name}".`)
      const member = members[name]
      return [name, inner.length > 0 && typeof member === 'object' && member !== null ? pick(member, inner) : member]
    }),
  )
}
