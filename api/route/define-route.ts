import { z } from 'zod'
import type { Config } from '../../shared/config/config.ts'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import { snapshot } from '../../shared/registry/ends.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { type ChangeFeed, type Database, type Readiness, withSignal } from '../../shared/store/store.ts'
import type { Caller, RateLimits } from '../admission/admission.ts'
import type { Cache } from '../cache/cache.ts'
import type { Counts } from '../coverage/counts.ts'
import {
  type Answer,
  type Format,
  type Representation,
  toQueryKey,
  toRepresentation,
  withByteOrderMark,
} from '../formats/formats.ts'
import { type FlatHeaders, PAGE_HEADERS, RANGE_HEADERS, RECORD_HEADERS } from '../http/headers.ts'
import { createMediaTypeChooser } from '../http/negotiation.ts'
import type { QueryShape } from '../parameters/parse.ts'
import { recordParameters } from '../parameters/questions.ts'
import { Problem } from '../problem/problem.ts'
import { type ReadScope, withQueue } from '../single-flight/single-flight.ts'
import { estimateValues, toUnits } from './cost.ts'
import { type EntityKind, eachOfKind, findEach, findOne, type Named, oneOfKind } from './entities.ts'
import type { Connect, RequestContext } from './request-context.ts'
import type { StoredPoints } from './stored-points.ts'

/** A deprecated route. Days are UTC, as `2027-01-31`. */
export interface Deprecation {
  readonly since: string
  /** The first day on which it may be removed. */
  readonly sunset: string
  /** The path that replaces it. */
  readonly instead: string
}

/** Minimum notice for breaking changes (docs/contract.md, section 11). */
const LEAST_DAYS = 180

/** @throws Error if clients would have less time than promised. */
export function toDeprecated(deprecation: Deprecation): Deprecation {
  const days = (Date.parse(deprecation.sunset) - Date.parse(deprecation.since)) / DAY_MS
  if (days >= LEAST_DAYS) return deprecation
  throw new Error(
    `a deprecated route is served for ${LEAST_DAYS} days at least, not from ${deprecation.since} to ${deprecation.sunset}`,
  )
}

/** `Deprecation` (RFC 9745), `Sunset` (RFC 8594), and a link to the replacement. */
export const toDeprecationHeaders = ({ since, sunset, instead }: Deprecation): FlatHeaders => [
  ...['Deprecation', `@${Date.parse(since) / 1000}`],
  ...['Sunset', new Date(sunset).toUTCString()],
  ...['Link', `<${instead}>; rel="successor-version"`],
]

/** The documentation of a route. */
export interface Described {
  /** Its operation id in the OpenAPI document, as a method name: `listTokens`. */
  readonly operation: string
  /** Parts in braces are path parameters, declared in `query` like the others. */
  readonly path: string
  /** Also served, with a `Link` to `path` (docs/contract.md, section 1). */
  readonly aliases?: readonly string[]
  readonly tag: string
  readonly summary: string
  readonly description: string
}

/** Picks these members from a declaration with more. */
export function toDescribed({
  operation,
  path,
  aliases = [],
  tag,
  summary,
  description,
}: Described): Required<Described> {
  return { operation, path, aliases, tag, summary, description }
}

/** Dependencies of every route. `now` is the only clock, in Unix milliseconds. */
export interface AppContext {
  readonly db: Database
  readonly registry: Registry
  readonly config: Config
  readonly changeFeed: ChangeFeed
  readonly cache: Cache
  readonly storedPoints: StoredPoints
  readonly readiness: Readiness
  readonly counts: Counts
  readonly connect: Connect
  /** Keys and request limits; requests are unlimited if absent. */
  readonly limits?: RateLimits
  readonly now: () => number
  /**
   * The client and its limit, if requests are limited. Set only for volatile answers, because other answers are shared
   * by all clients.
   */
  readonly caller?: Caller | undefined
  /** Aborted when the process is stopping: it still answers, but reports that it is not ready. */
  readonly stopping?: AbortSignal
}

type NoEntity = undefined
type NoRecord = undefined

/** The dependencies of one request. Every statement of `db` waits for the request's slot, and ends with the signal. */
export type RequestCall = AppContext & ReadScope

type Call<Query, Found, R> = RequestCall & {
  readonly query: Query
  readonly found: Found
  /** All requested entities, ordered by id; one unless the route takes several. */
  readonly entities: readonly Found[]
  readonly representation: R extends z.ZodObject ? Representation : undefined
}

/** A record with additional members, for requests with certain parameters. */
export interface WiderRecord {
  /** The record with all additional members. */
  readonly record: z.ZodObject
  /** The condition for each additional member: a parameter (`source`), or a parameter with a value (`exact=true`). */
  readonly members: Readonly<Record<string, string>>
  /** The schemas of the records that clients get, besides the usual one. */
  readonly shapes: readonly z.ZodObject[]
}

/** Whether a query meets the condition for an additional member. */
function isBrought(condition: string, query: Query): boolean {
  const [name = '', value] = condition.split('=')
  const given = query[name]
  return given !== undefined && (value === undefined || [given].flat().includes(value))
}

/** The names of a record's members in the answer to a query without `fields`. */
function toUsual({ shape }: z.ZodObject, wider: WiderRecord | undefined, query: Query): readonly string[] {
  if (wider === undefined) return Object.keys(shape)
  return Object.keys(wider.record.shape).filter((name) => {
    const condition = wider.members[name]
    return condition === undefined || isBrought(condition, query)
  })
}

interface RouteDefinition<Shape extends QueryShape, E extends Named | NoEntity, R extends z.ZodObject | NoRecord>
  extends Described {
  /** A single-entity route: it takes one `id` or one `name`, and `found` is the entity. */
  readonly one?: E extends Named ? EntityKind<E> : never
  /** A parameter that may replace the entity. */
  readonly oneUnless?: keyof Shape & string
  /**
   * With another format than JSON, which contains one entity, the route takes several. The parameters of `query` that differ
   * there, such as those that take several values, have other schemas here.
   */
  readonly severalInTables?: boolean | QueryShape
  readonly query: Shape
  /**
   * The schema of one record if the answer is a list: the route then takes `format` and `fields`. If `response` is one
   * object around the records, `fields` is only for the other formats.
   */
  readonly record?: R
  /** The record with additional members, which are present only if a parameter brings them or `fields` names them. */
  readonly recordWith?: WiderRecord
  /** The schema of every JSON body. Default: a list of records. For other types than JSON it describes the text. */
  readonly response?: z.ZodType
  readonly contentType?: string
  /** Media types in `Accept` that clients send for answers of this content type. */
  readonly alsoAccepted?: readonly string[]
  /** The schema of the data of each event, for an answer that is a stream of server-sent events. */
  readonly events?: Readonly<Record<string, z.ZodType>>
  /** Set for a deprecated route with a replacement: the route works until its sunset (docs/contract.md, section 11). */
  readonly deprecated?: Deprecation
  /**
   * Change events of these datasets invalidate cached answers; the first one's cadence decides when the data is stale.
   */
  readonly datasets: readonly DatasetFacts[]
  /** Whether answers are of the moment, such as health: never cached, and outside of the queue. */
  readonly volatile?: boolean
  /** Whether the answer is `no_data` while nothing is stored; other answers are then empty. */
  readonly mayHaveNoData?: boolean
  /** Cheap answers that are needed during incidents: they bypass the queue, and are cached. */
  readonly isUrgent?: boolean
  /** Estimates the stored values that an answer reads, if it reads others than the points of its series. */
  estimateValues?(call: Omit<Call<z.output<z.ZodObject<Shape>>, E, R>, keyof ReadScope>): number
  /** Additional headers of a 200 answer, name to description. */
  readonly headers?: Readonly<Record<string, string>>
  /** Makes the answer, once for all concurrent requests; every route has it or `connect`. */
  handle?(call: Call<z.output<z.ZodObject<Shape>>, E, R>): Promise<Answer>
  /** Handles the response itself, without an end. */
  connect?(call: Omit<Call<z.output<z.ZodObject<Shape>>, E, R>, 'db' | keyof ReadScope>, context: RequestContext): void
}

/** A declared route with its own types hidden, so that one list can contain all routes. */
export interface Route extends Required<Described> {
  readonly query: QueryShape
  /** The kind of the entity that a single-entity route is about. */
  readonly one: EntityKind<Named> | undefined
  /** The parameter that may replace the entity. */
  readonly oneUnless: string | undefined
  /** The parameters of a request for another format, if they differ. */
  readonly tableQuery: QueryShape
  readonly record: z.ZodObject | undefined
  /** The record with the additional members of parameters. */
  readonly recordWith: WiderRecord | undefined
  readonly response: z.ZodType
  readonly contentType: string
  /** The content type without parameters. */
  readonly mediaType: string
  /** Whether an `Accept` header accepts the media type. */
  accepts(accept: string | undefined): boolean
  readonly datasets: readonly DatasetFacts[]
  readonly volatile: boolean
  readonly mayHaveNoData: boolean
  readonly isUrgent: boolean
  readonly deprecated: Deprecation | undefined
  /** The data of the events of a stream, by the name of the event. */
  readonly events: Readonly<Record<string, z.ZodType>> | undefined
  /** Whether its answers have no end. */
  readonly isEndless: boolean
  readonly headers: Readonly<Record<string, string>>
  /**
   * Resolves a parsed query. `key` is equal for all queries with the same answer; `answer` finds it.
   * @throws Problem if the query selects no entity or several, or has a cursor of another query.
   */
  resolve(query: Query, format: Format, appContext: AppContext): ResolvedRequest
}

type Query = Readonly<Record<string, unknown>>

export interface ResolvedRequest {
  readonly key: string
  /** The registry version that it was resolved with. */
  readonly registryVersion: string
  /** The estimated units of the request if its answer is not cached. */
  readonly cost: number
  /** Handles a request itself; undefined for every route with finite answers. */
  readonly connect: ((context: RequestContext) => void) | undefined
  /**
   * All its statements wait for the slot and end with the signal of the scope. `at` is the time of the answer in Unix
   * milliseconds, default now: one answer uses one reading of the clock.
   */
  answer(scope: ReadScope, at?: number): Promise<Answer>
}

/** For routes with JSON that is one object around the records. */
const refuseFields = () =>
  new Problem('invalid_parameter', 'fields works with another format than JSON here, for example format=csv.', {
    param: 'fields',
  })

const NO_RECORD = 'a route without a record and without a response'
const NO_ANSWER = 'a route that makes no answer'

/**
 * The selected entities, and the query with their ids instead of names: a query by id and one by name share one answer.
 */
function findEntities(kind: EntityKind<Named> | undefined, isMany: boolean, query: Query, registry: Registry) {
  if (kind === undefined) return { entities: [], canonical: query }
  const entities = isMany ? findEach(kind, registry, query) : [findOne(kind, registry, query)]
  const found = { id: entities.map(({ id }) => id).join(), name: undefined }
  // A fixed order of members, so that the link to the next page is also the same.
  return { entities, canonical: { ...found, ...query, ...found } }
}

/** The values of parameters as text, one or several: a cursor is the same in all formats. */
const joinEach = (query: Query, names: readonly string[]) =>
  Object.fromEntries(names.filter((name) => name in query).map((name) => [name, [query[name]].flat().join()]))

/** The JSON schema of a list of records, which may be wider ones. */
function toListOf(record: z.ZodObject | undefined, wider: readonly z.ZodObject[] = []): z.ZodType | undefined {
  if (record === undefined) return undefined
  return wider.length === 0 ? z.array(record) : z.union([record, ...wider].map((one) => z.array(one)))
}

const isOfEntity = ({ id, name }: Query) => id !== undefined || name !== undefined

/** Declares a route: everything specific to one path. */
export function defineRoute<
  Shape extends QueryShape,
  E extends Named | NoEntity = NoEntity,
  R extends z.ZodObject | NoRecord = NoRecord,
>(route: RouteDefinition<Shape, E, R>): Route {
  const kind = route.one as EntityKind<Named> | undefined
  const { record, recordWith, path, severalInTables = false } = route
  const widest = recordWith?.record ?? record
  const response = route.response ?? toListOf(record, recordWith?.shapes)
  if (response === undefined) throw new Error(NO_RECORD)
  const rest = {
    ...route.query,
    ...(widest === undefined ? {} : recordParameters(widest)),
  }
  const { contentType = 'application/json; charset=utf-8' } = route
  const mediaType = contentType.split(';', 1)[0] ?? contentType
  const chooseMediaType = createMediaTypeChooser([mediaType, ...(route.alsoAccepted ?? [])])
  const query = kind === undefined ? rest : { ...oneOfKind(kind), ...rest }
  const several = typeof severalInTables === 'object' ? severalInTables : {}
  return {
    ...toDescribed(route),
    query,
    one: kind,
    oneUnless: route.oneUnless,
    tableQuery: kind !== undefined && severalInTables ? { ...eachOfKind(kind), ...rest, ...several } : query,
    record,
    recordWith,
    response,
    contentType,
    mediaType,
    accepts: (accept) => chooseMediaType(accept) !== undefined,
    datasets: route.datasets,
    volatile: route.volatile ?? false,
    mayHaveNoData: route.mayHaveNoData ?? false,
    isUrgent: route.isUrgent ?? false,
    deprecated: route.deprecated && toDeprecated(route.deprecated),
    events: route.events,
    isEndless: route.connect !== undefined,
    headers: {
      ...route.headers,
      ...(record === undefined ? {} : { ...RECORD_HEADERS, ...RANGE_HEADERS }),
      ...('cursor' in query ? PAGE_HEADERS : {}),
    },
    resolve: ({ bom, ...given }, format, appContext) => {
      const hasMark = bom === 'true' && format === 'csv'
      const parsed = hasMark ? { ...given, bom } : given
      if (format === 'json' && response instanceof z.ZodObject && 'fields' in parsed) throw refuseFields()
      const isMany = severalInTables !== false && format !== 'json'
      const isOfNone = route.oneUnless !== undefined && route.oneUnless in parsed && !isOfEntity(parsed)
      // The active registry may change before the answer is made.
      const registry = snapshot(appContext.registry)
      const selected = { ...parsed, ...joinEach(parsed, Object.keys(several)) }
      const { entities, canonical } = findEntities(isOfNone ? undefined : kind, isMany, selected, registry)
      const names = entities.map(({ name }) => name)
      const usual = record && toUsual(record, recordWith, parsed)
      const representation =
        widest && usual && toRepresentation({ path, query: canonical, format, record: widest, usual, names })
      const call = { ...appContext, registry, query: parsed, found: entities[0], entities, representation }
      return {
        get cost() {
          const whole = { entities: entities.length, now: call.now() }
          const own = route.estimateValues?.(call as unknown as Parameters<NonNullable<typeof route.estimateValues>>[0])
          return toUnits(own ?? estimateValues(query, parsed, whole))
        },
        key: representation?.key ?? toQueryKey(path, canonical),
        registryVersion: registry.version,
        connect:
          route.connect &&
          ((context) => route.connect?.(call as unknown as Parameters<NonNullable<typeof route.connect>>[0], context)),
        answer: async ({ signal, queue, onSuccess }, at = appContext.now()) => {
          const db = withQueue(withSignal(call.db, signal), { queue })
          const bound = { ...call, now: () => at, db, signal, queue, onSuccess }
          if (route.handle === undefined) throw new Error(NO_ANSWER)
          const answer = await route.handle(bound as unknown as Parameters<typeof route.handle>[0])
          return hasMark ? withByteOrderMark(answer) : answer
        },
      }
    },
  }
}
