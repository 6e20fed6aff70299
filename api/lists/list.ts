import { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import type { Lifetime } from '../../shared/registry/entities.ts'
import { type Representation, toObject, toUsualRecord } from '../formats/formats.ts'
import { LIST_HEADERS } from '../http/headers.ts'
import { include, manyReferences, page } from '../parameters/kinds.ts'
import { toQuestions } from '../parameters/questions.ts'
import { type AppContext, type Described, defineRoute, type Route, toDescribed } from '../route/define-route.ts'
import {
  daoKind,
  type EntityKind,
  type ListQueryOfEntities,
  manyOfKind,
  type Named,
  selectMany,
  tokenKind,
} from '../route/entities.ts'
import { answerList, asOfParameter, checkPast, type ListAnswer, type ListSource, toListHead } from './answer.ts'
import type { ListQuery } from './engine.ts'
import { PAST_QUOTES } from './past-quotes.ts'

type Listable = Named & Lifetime & { readonly live: boolean }

/** The properties that lists of the same kind of entity share. */
interface Listed {
  readonly kind: EntityKind<Listable>
  readonly tag: string
  /** The plural noun of the entities in descriptions. */
  readonly noun: string
  /** SQL of the entities as `alias`, joined with the quote of their token as `q`. Without a quote its columns are empty. */
  readonly from: (quotes: string) => string
  readonly alias: string
}

/** The request as a list reads it. */
interface ListCall extends Pick<AppContext, 'registry' | 'now'> {
  readonly query: ListQueryOfEntities & {
    readonly sort: string | undefined
    readonly filter: string[] | undefined
    readonly asOf?: unknown
    readonly limit: number
  }
}

/** SQL for the quotes of tokens, or those that were known at a moment (`{at: Int64}`). */
export const toQuotes = (isPast: boolean): string => (isPast ? PAST_QUOTES : '(SELECT * FROM token_quotes FINAL)')

/** Tokens: `t` is the row of the token, `q` its quote. */
export const listedTokens: Listed = {
  kind: tokenKind,
  tag: 'Tokens',
  noun: 'tokens',
  from: (quotes) => `(SELECT * FROM tokens FINAL) AS t
LEFT JOIN ${quotes} AS q ON q.token = t.key`,
  alias: 't',
}

/** DAOs: `d` is the row of the DAO, `q` the quote of its token. */
export const listedDaos: Listed = {
  kind: daoKind,
  tag: 'DAOs',
  noun: 'DAOs',
  from: (quotes) => `(SELECT * FROM daos FINAL) AS d
LEFT JOIN ${quotes} AS q ON q.token = d.token_key`,
  alias: 'd',
}

interface List extends Omit<Described, 'tag'> {
  readonly of: Listed
  readonly record: z.ZodObject
  /** A change event of one of these changes the list. The cadence of the first decides when it is stale. */
  readonly datasets: readonly DatasetFacts[]
  /** Whether people maintain the records, which are never stale. */
  readonly isCurated?: boolean
  /** The name of the statement in logs and traces. */
  readonly name: string
  /** SQL of the time of the newest datum of a record: DateTime64(3). */
  readonly asOf: string
  /** SQL of the record's members, by name or in order. `{charts: String}` is the URL prefix of charts. */
  readonly values: string | Readonly<Record<string, string>>
  /** SQL of the tables that are joined to the entities. */
  readonly joins?: string
  /** SQL for the records as they were known at `{at: Int64}`. Without it the route has no `asOf`. */
  readonly pastJoins?: string
  /** SQL of the condition that an entity has a record; by default all have one. */
  readonly where?: string
  /** Another member of the records, last, which `include` brings. `description` is that of the parameter. */
  readonly included?: {
    readonly name: string
    readonly description: string
    readonly schema: z.ZodType
    readonly value: string
    readonly joins: string
    readonly pastJoins: string
  }
  /** Set if the records depend on the clock or need parameters that are computed for each request. */
  readonly toTimeScope?: (call: Pick<AppContext, 'db' | 'registry' | 'now'>) => Promise<TimeScope>
}

/** Parameters of the statement, and the time range in which the clock does not change the records, in Unix milliseconds. */
export interface TimeScope {
  readonly params: Readonly<Record<string, unknown>>
  readonly from: number
  readonly until: number | undefined
}

/** The route of a list. */
export interface ListRoute extends Route {
  readonly record: z.ZodObject
  /** All records of the list, as they were known at `at` (Unix milliseconds) if the route has `asOf`. */
  toSource(appContext: Pick<AppContext, 'config' | 'registry'>, at?: number): ListSource
}

/** The values of a record, and that of the member which `include` brings. */
const withValue = (values: List['values'], included: List['included']): List['values'] => {
  if (included === undefined) return values
  const { name, value } = included
  return typeof values === 'string' ? `${values}, ${value}` : { ...values, [name]: value }
}

/** The record with the member which `include` brings. In the documentation this is the record, and the member may be absent. */
function toWiderRecord({ record, included }: List, isDocumented: boolean): z.ZodObject {
  if (included === undefined) return record
  const { name, schema } = included
  const description = schema.description ?? ''
  if (!isDocumented) return record.extend({ [name]: schema })
  return record.extend({ [name]: schema.optional().describe(description) }).meta(record.meta() ?? {})
}

/** The statement that loads the records: `key`, `name`, `market_cap`, `as_of`, `record`. */
function toRecordsSql(list: List, isPast: boolean, included?: List['included']): string {
  const { from, alias } = list.of
  const record = toObject(included ? toWiderRecord(list, false) : list.record, withValue(list.values, included))
  // For a past moment the keys are those of the entities that existed then.
  const isListed = isPast ? 'true' : `${alias}.live`
  return `
SELECT ${alias}.key AS key, ${alias}.name AS name, q.market_cap AS market_cap, ${list.asOf} AS as_of, ${record} AS record
FROM ${from(toQuotes(isPast))}
${(isPast ? list.pastJoins : list.joins) ?? ''}
${(isPast ? included?.pastJoins : included?.joins) ?? ''}
WHERE ${isListed} AND ({all: Bool} OR has({keys: Array(UInt64)}, ${alias}.key)) AND (${list.where ?? 'true'})`
}

/**
 * A route that lists live tokens or DAOs, all of them or those that are selected, in pages (docs/contract.md, sections 2, 3 and
 * 8). One statement loads the records after each change; the list engine answers all requests from memory.
 */
export function defineList(list: List): ListRoute {
  const { kind, tag, noun } = list.of
  const questions = toQuestions(list.record)
  const { included } = list
  const sql = { now: toRecordsSql(list, false), past: toRecordsSql(list, true) }
  const isWider = ({ fields }: Representation) => included !== undefined && fields.includes(included.name)
  const readQuery = ({ query, registry, now }: ListCall): { at: number | undefined; listQuery: ListQuery } => {
    const at = query.asOf as number | undefined
    checkPast(at, now())
    const selection = selectMany(kind, registry, query)
    const [sort, filters] = [questions.toSort(query.sort), questions.toFilters(query.filter)]
    return { at, listQuery: { selection, sort, filters, limit: query.limit } }
  }
  const withHead = (representation: Representation, answer: ListAnswer, at: number | undefined): ListAnswer => {
    const isTimeless = list.isCurated === true || at !== undefined
    return { ...answer, ...toListHead(answer, representation), ...(isTimeless ? { staleAt: null } : {}) }
  }
  const toSource: ListRoute['toSource'] = ({ config, registry }, at) => ({
    name: list.name,
    key: `${list.name} ${at ?? ''}`,
    datasets: list.datasets,
    sql: at === undefined ? sql.now : sql.past,
    there:
      at === undefined ? undefined : () => kind.all(registry).flatMap((one) => (wasThere(one, at) ? [one.key] : [])),
    params: { charts: `${config.api.publicUrl}/charts/24h/`, at },
  })
  const toWiderSource: ListRoute['toSource'] = (appContext, at) => ({
    ...toSource(appContext, at),
    key: `${list.name} ${at ?? ''} with ${included?.name}`,
    sql: toRecordsSql(list, at !== undefined, included),
  })
  const route = defineRoute({
    ...toDescribed({ ...list, tag }),
    query: {
      ...manyOfKind(kind),
      category: manyReferences('category', 'categories', 'lending'),
      chain: manyReferences('chain', 'chains', 'ethereum'),
      ...questions.parameters,
      ...(list.pastJoins === undefined ? {} : asOfParameter),
      ...(included && { include: include([included.name], included.description) }),
      ...page(noun, { default: 10, max: 500 }),
    },
    record: list.record,
    ...(included && {
      recordWith: {
        record: toWiderRecord(list, false),
        members: { [included.name]: `include=${included.name}` },
        shapes: [],
      },
    }),
    response: z.array(toWiderRecord(list, true)),
    datasets: list.datasets,
    headers: LIST_HEADERS,
    handle: async (call) => {
      const { at, listQuery } = readQuery(call)
      const timeScope = await list.toTimeScope?.(call)
      const representation = toUsualRecord(call.representation, list.record)
      const source = isWider(representation) ? toWiderSource(call, at) : toSource(call, at)
      const scoped =
        timeScope === undefined
          ? source
          : { ...source, key: `${source.key} ${timeScope.from}`, params: { ...source.params, ...timeScope.params } }
      const answer = withHead(representation, await answerList({ ...call, representation }, scoped, listQuery), at)
      return timeScope?.until === undefined ? answer : { ...answer, expiresAt: timeScope.until, isQuick: false }
    },
  })
  return { ...route, record: list.record, toSource }
}

/** Whether a list at this moment has the entity: it is live, or it ended later. */
export const wasThere = ({ live, until }: Listable, at: number) =>
  live || (until !== undefined && isThereAt({ until }, at))
