import { z } from 'zod'
import type { Config } from '../../shared/config/config.ts'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import { toFixed } from '../../shared/registry/living.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { CommitFeed } from '../../shared/store/commits.ts'
import type { Readiness } from '../../shared/store/readiness.ts'
import type { Answer } from '../answers/answer.ts'
import type { Format } from '../answers/formats.ts'
import { withSignal } from '../answers/leaving.ts'
import type { Memory } from '../answers/memory.ts'
import type { Counts } from '../coverage/counts.ts'
import { createMediaTypeChooser } from '../http/accept.ts'
import { PAGE_HEADERS, RANGE_HEADERS, RECORD_HEADERS } from '../http/headers.ts'
import type { Caller, GateOptions } from '../limits/gate.ts'
import type { QueryShape } from '../parameters/parse.ts'
import { recordParameters } from '../parameters/records.ts'
import { Problem } from '../problem/problem.ts'
import { type Representation, toQueryKey, toRepresentation } from '../records/representation.ts'
import { type Deprecation, toDeprecated } from './deprecation.ts'
import { type Described, toDescribed } from './described.ts'
import { type EntityKind, eachOfKind, findEach, findOne, type Named, oneOfKind } from './entities.ts'
import type { Connect, Exchange } from './exchange.ts'
import type { StoredPoints } from './stored-points.ts'

/** What every route may use. `now` is the only clock, in Unix milliseconds. */
export interface Surroundings {
  readonly db: Database
  readonly registry: Registry
  readonly config: Config
  readonly commits: CommitFeed
  readonly memory: Memory
  readonly storedPoints: StoredPoints
  readonly readiness: Readiness
  readonly counts: Counts
  readonly connect: Connect
  /** Who may ask how often; everybody, unless it is given. */
  readonly limits?: Pick<GateOptions, 'keys' | 'anonymous' | 'counting'>
  readonly now: () => number
  /** Who asks, where requests are limited: for answers of the moment only, because others are everybody's. */
  readonly caller?: Caller | undefined
  /** Aborted once the process is to end: it still answers, but says that it is not ready. */
  readonly stopping?: AbortSignal
}

type NoEntity = undefined
type NoRecord = undefined

type Call<Query, Found, R> = Surroundings & {
  readonly query: Query
  readonly found: Found
  /** All entities asked for, in the order of their ids; one unless the route takes several. */
  readonly entities: readonly Found[]
  readonly representation: R extends z.ZodObject ? Representation : undefined
  /** Aborted when nobody waits for the answer any more; every statement of `db` ends with it. */
  readonly signal: AbortSignal
}

/** A record with further members, for requests that give a parameter. */
interface WiderRecord<Parameter extends string = string> {
  readonly parameter: Parameter
  readonly record: z.ZodObject
}

interface RouteDefinition<Shape extends QueryShape, E extends Named | NoEntity, R extends z.ZodObject | NoRecord>
  extends Described {
  /** A single-entity route: it takes one `id` or one `name`, and `found` is the entity. */
  readonly one?: E extends Named ? EntityKind<E> : never
  /** A parameter that may stand in place of the entity. */
  readonly oneUnless?: keyof Shape & string
  /** With another format than JSON, which holds one entity, the route takes several. */
  readonly severalInTables?: boolean
  readonly query: Shape
  /**
   * One of the records that the answer is a list of: the route takes `format` and `fields` then. Where `response` is one
   * object with the records inside, `fields` is for the other formats.
   */
  readonly record?: R
  /** The record with the members that it has only where a parameter is given, or `fields` names them. */
  readonly recordWith?: WiderRecord<keyof Shape & string>
  /** Every JSON body fits it, a list of records unless it is given; for other types than JSON it describes the text. */
  readonly response?: z.ZodType
  readonly contentType?: string
  /** Set where something else is to be asked instead: the route goes on until its sunset (docs/contract.md, section 11). */
  readonly deprecated?: Deprecation
  /** Whose commits make kept bytes stale; the first one's cadence says when the data is. */
  readonly datasets: readonly DatasetFacts[]
  /** Answers of the moment, such as health: never kept, by nobody, and made however many others are being made. */
  readonly volatile?: boolean
  /** Whether the answer is `no_data` while nothing is stored; other answers are empty then. */
  readonly mayHaveNoData?: boolean
  /** Cheap, and asked for when there is trouble: made however many others wait, and kept. */
  readonly isUrgent?: boolean
  /** Headers of its own that a 200 answer carries, name to description. */
  readonly headers?: Readonly<Record<string, string>>
  /** Makes the answer; every route has it or `connect`. */
  handle?(call: Call<z.output<z.ZodObject<Shape>>, E, R>): Promise<Answer>
  /** The same answer, if it can be put together from what is kept without any statement: nobody has to wait for it then. */
  peek?(call: Omit<Call<z.output<z.ZodObject<Shape>>, E, R>, 'db' | 'signal'>): Answer | undefined
  /** Answers by itself, and without an end: the response is in its hands. */
  connect?(call: Omit<Call<z.output<z.ZodObject<Shape>>, E, R>, 'db' | 'signal'>, exchange: Exchange): void
}

/** A declared route with its own types closed over, so that one list can hold all of them. */
export interface Route extends Required<Described> {
  readonly query: QueryShape
  /** The parameters of a request for another format, where they are not the same. */
  readonly tableQuery: QueryShape
  readonly record: z.ZodObject | undefined
  /** The record with the members that a parameter brings. */
  readonly recordWith: WiderRecord | undefined
  readonly response: z.ZodType
  readonly contentType: string
  /** The content type without parameters. */
  readonly mediaType: string
  /** Whether an `Accept` header takes the media type. */
  accepts(accept: string | undefined): boolean
  readonly datasets: readonly DatasetFacts[]
  readonly volatile: boolean
  readonly mayHaveNoData: boolean
  readonly isUrgent: boolean
  readonly deprecated: Deprecation | undefined
  /** Whether its answers have no end. */
  readonly isEndless: boolean
  readonly headers: Readonly<Record<string, string>>
  /**
   * Settles what a parsed query means. `key` is equal for every query with the same answer; `answer` finds it.
   * @throws Problem when the query names no entity or several, or has a cursor of another one.
   */
  settle(query: Query, format: Format, surroundings: Surroundings): Settled
}

type Query = Readonly<Record<string, unknown>>

interface Settled {
  readonly key: string
  /** The version of the registry that it was settled with. */
  readonly basis: string
  /** Answers an exchange by itself; undefined for every route with answers that end. */
  readonly connect: ((exchange: Exchange) => void) | undefined
  /** The answer of a moment, if it can be put together from what is kept. */
  peek(at: number): Answer | undefined
  /**
   * Every statement that is sent for it ends with the signal. `at` is its moment, now unless it is given, in Unix
   * milliseconds: all of an answer is as of one reading of the clock.
   */
  answer(signal: AbortSignal, at?: number): Promise<Answer>
}

/** Where JSON is one object with the records inside. */
const refuseFields = () =>
  new Problem('invalid_parameter', 'fields works with another format than JSON here, for example format=csv.', {
    param: 'fields',
  })

const NO_RECORD = 'a route without a record and without a response'
const NO_ANSWER = 'a route that makes no answer'

/**
 * The entities that a query means, with the query as it says so by their ids: by id or name, an answer is one answer.
 */
function findEntities(kind: EntityKind<Named> | undefined, isMany: boolean, query: Query, registry: Registry) {
  if (kind === undefined) return { entities: [], canonical: query }
  const entities = isMany ? findEach(kind, registry, query) : [findOne(kind, registry, query)]
  const found = { id: entities.map(({ id }) => id).join(), name: undefined }
  // Its members in one order: the link to the next page is the same too.
  return { entities, canonical: { ...found, ...query, ...found } }
}

/** What JSON is of a list of records, which may be wider ones. */
function toListOf(record: z.ZodObject | undefined, wider: z.ZodObject | undefined): z.ZodType | undefined {
  if (record === undefined) return undefined
  return wider === undefined ? z.array(record) : z.union([z.array(record), z.array(wider)])
}

const isOfEntity = ({ id, name }: Query) => id !== undefined || name !== undefined

/** Declares a route: everything about one path that is not plumbing. */
export function defineRoute<
  Shape extends QueryShape,
  E extends Named | NoEntity = NoEntity,
  R extends z.ZodObject | NoRecord = NoRecord,
>(route: RouteDefinition<Shape, E, R>): Route {
  const kind = route.one as EntityKind<Named> | undefined
  const { record, recordWith, path, severalInTables = false } = route
  const widest = recordWith?.record ?? record
  const response = route.response ?? toListOf(record, recordWith?.record)
  if (response === undefined) throw new Error(NO_RECORD)
  const rest = {
    ...route.query,
    ...(widest === undefined ? {} : recordParameters(widest)),
  }
  const { contentType = 'application/json; charset=utf-8' } = route
  const mediaType = contentType.split(';', 1)[0] ?? contentType
  const chooseMediaType = createMediaTypeChooser([mediaType])
  const query = kind === undefined ? rest : { ...oneOfKind(kind), ...rest }
  return {
    ...toDescribed(route),
    query,
    tableQuery: kind !== undefined && severalInTables ? { ...eachOfKind(kind), ...rest } : query,
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
    isEndless: route.connect !== undefined,
    headers: {
      ...route.headers,
      ...(record === undefined ? {} : { ...RECORD_HEADERS, ...RANGE_HEADERS }),
      ...('cursor' in query ? PAGE_HEADERS : {}),
    },
    settle: (parsed, format, surroundings) => {
      if (format === 'json' && response instanceof z.ZodObject && 'fields' in parsed) throw refuseFields()
      const isMany = severalInTables && format !== 'json'
      const isOfNone = route.oneUnless !== undefined && route.oneUnless in parsed && !isOfEntity(parsed)
      // Another one may come into force before the answer is made.
      const registry = toFixed(surroundings.registry)
      const { entities, canonical } = findEntities(isOfNone ? undefined : kind, isMany, parsed, registry)
      const names = entities.map(({ name }) => name)
      const usual = recordWith !== undefined && recordWith.parameter in parsed ? widest : record
      const representation =
        widest && usual && toRepresentation({ path, query: canonical, format, record: widest, usual, names })
      const call = { ...surroundings, registry, query: parsed, found: entities[0], entities, representation }
      return {
        key: representation?.key ?? toQueryKey(path, canonical),
        basis: registry.version,
        connect:
          route.connect &&
          ((exchange) =>
            route.connect?.(call as unknown as Parameters<NonNullable<typeof route.connect>>[0], exchange)),
        peek: (at) => {
          const bound = { ...call, now: () => at }
          return route.peek?.(bound as unknown as Parameters<NonNullable<typeof route.peek>>[0])
        },
        answer: async (signal, at = surroundings.now()) => {
          const bound = { ...call, now: () => at, db: withSignal(call.db, signal), signal }
          if (route.handle === undefined) throw new Error(NO_ANSWER)
          return route.handle(bound as unknown as Parameters<typeof route.handle>[0])
        },
      }
    },
  }
}
