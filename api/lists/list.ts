import type { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import { isThereAt, type Lifetime } from '../../shared/registry/ends.ts'
import type { Answer } from '../answers/answer.ts'
import { FORMATS } from '../answers/formats.ts'
import { LIST_HEADERS } from '../http/headers.ts'
import { manyReferences, page } from '../parameters/kinds.ts'
import { toQuestions } from '../parameters/questions.ts'
import { toObject } from '../records/columns.ts'
import type { Representation } from '../records/representation.ts'
import { defineRoute, type Route, type Surroundings } from '../route/define-route.ts'
import { type Described, toDescribed } from '../route/described.ts'
import {
  type AskedFor,
  daoKind,
  type EntityKind,
  manyOfKind,
  type Named,
  selectMany,
  tokenKind,
} from '../route/entities.ts'
import { asOfParameter, checkPast } from './as-of.ts'
import { toListHead } from './head.ts'
import { answerFromDatabase, type ListSource } from './in-database.ts'
import { type Asked, answerFromSet, type ListAnswer } from './in-memory.ts'
import { toKeyset } from './keyset.ts'
import { PAST_QUOTES } from './past-quotes.ts'
import { findRecordSet, peekRecordSet } from './record-sets.ts'

type Listable = Named & Lifetime & { readonly live: boolean }

/** What lists of one kind of entity have in common. */
interface Listed {
  readonly kind: EntityKind<Listable>
  readonly tag: string
  /** What the records are called. */
  readonly noun: string
  /**
   * The entity's record as `alias`, with a quote of its token as `q`, whose members are empty where there is none.
   */
  readonly from: (quotes: string) => string
  readonly alias: string
}

/** What a list is asked. */
interface ListCall extends Pick<Surroundings, 'registry' | 'now'> {
  readonly query: AskedFor & {
    readonly sort: string | undefined
    readonly filter: string[] | undefined
    readonly asOf?: unknown
    readonly limit: number
  }
}

const QUOTES = '(SELECT * FROM token_quotes FINAL)'

/** Tokens: `t` is the token's record, `q` its quote. */
export const listedTokens: Listed = {
  kind: tokenKind,
  tag: 'Tokens',
  noun: 'tokens',
  from: (quotes) => `(SELECT * FROM tokens FINAL) AS t
LEFT JOIN ${quotes} AS q ON q.token = t.key`,
  alias: 't',
}

/** DAOs: `d` is the DAO's record, `q` the quote of its token. */
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
  /** Whose commits change the list; the first one's cadence says when it is stale. */
  readonly datasets: readonly DatasetFacts[]
  /** Whether a record does not grow stale by not changing, because people keep it and no provider. */
  readonly isCurated?: boolean
  /** What logs and traces call the statement. */
  readonly name: string
  /** Time of a record's newest datum: DateTime64(3). */
  readonly asOf: string
  /** The record's members, in order. `{charts: String}` is where charts are served. */
  readonly values: string
  /** What is joined onto the entities for it. */
  readonly joins?: string
  /** The same for the records as they were known at a moment, `{at: Int64}`; without it the list is of now only. */
  readonly pastJoins?: string
  /** Which of the entities have a record; all unless it is given. */
  readonly where?: string
  /** Of records that the clock changes, or that need more than the database knows. */
  readonly toMoment?: (call: Pick<Surroundings, 'db' | 'registry' | 'now'>) => Promise<Moment>
}

/** What records are made with at a moment, and from when to when they are the same by the clock, in Unix milliseconds. */
export interface Moment {
  readonly params: Readonly<Record<string, unknown>>
  readonly from: number
  readonly until: number | undefined
}

/** A list's route, and what it is made of. */
export interface ListRoute extends Route {
  readonly record: z.ZodObject
  /** All of its records, as they were known at a moment in Unix milliseconds if it is given and the list has a past. */
  toSource(surroundings: Pick<Surroundings, 'config' | 'registry'>, at?: number): ListSource
}

/** The records of a list, each with what orders it: `key`, `name`, `market_cap`, `as_of`. */
function toRecordsSql(list: List, isPast: boolean): string {
  const { from, alias } = list.of
  const record = toObject(list.record, list.values)
  // What a past record is of was there then, whether or not it is still.
  const isListed = isPast ? 'true' : `${alias}.live`
  return `
SELECT ${alias}.key AS key, ${alias}.name AS name, q.market_cap AS market_cap, ${list.asOf} AS as_of, ${record} AS record
FROM ${from(isPast ? PAST_QUOTES : QUOTES)}
${(isPast ? list.pastJoins : list.joins) ?? ''}
WHERE ${isListed} AND ({all: Bool} OR has({keys: Array(UInt64)}, ${alias}.key)) AND (${list.where ?? 'true'})`
}

/**
 * A route that lists live tokens or DAOs, all of them or those that are selected, in pages (docs/contract.md, sections 2, 3 and
 * 8). Its records are read once a commit and asked in memory; where there is no room for them, and for binary formats,
 * ClickHouse answers, the same bytes.
 */
export function defineList(list: List): ListRoute {
  const { kind, tag, noun } = list.of
  const questions = toQuestions(list.record)
  const sql = { now: toRecordsSql(list, false), past: toRecordsSql(list, true) }
  const toQuestion = ({ query, registry, now }: ListCall) => {
    const at = query.asOf as number | undefined
    checkPast(at, now())
    const sort = questions.toSort(query.sort)
    const asked: Asked = {
      selection: selectMany(kind, registry, query),
      sort,
      filters: questions.toFilters(query.filter),
      keyset: toKeyset(sort),
      limit: query.limit,
    }
    return { at, asked, key: `${list.name} ${at ?? ''}` }
  }
  const toAnswer = (representation: Representation, answer: ListAnswer, at: number | undefined): Answer => {
    const isTimeless = list.isCurated === true || at !== undefined
    return { ...answer, ...toListHead(answer, representation), ...(isTimeless ? { staleAt: null } : {}) }
  }
  const toSource: ListRoute['toSource'] = ({ config, registry }, at) => ({
    name: list.name,
    sql: at === undefined ? sql.now : sql.past,
    there: at === undefined ? undefined : kind.all(registry).flatMap((one) => (wasThere(one, at) ? [one.key] : [])),
    params: { charts: `${config.api.publicUrl}/charts/24h/`, at },
  })
  const route = defineRoute({
    ...toDescribed({ ...list, tag }),
    query: {
      ...manyOfKind(kind),
      category: manyReferences('category', 'categories', 'lending'),
      chain: manyReferences('chain', 'chains', 'ethereum'),
      ...questions.parameters,
      ...(list.pastJoins === undefined ? {} : asOfParameter),
      ...page(noun, { default: 10, max: 500 }),
    },
    record: list.record,
    datasets: list.datasets,
    headers: LIST_HEADERS,
    peek: (call) => {
      if (list.toMoment !== undefined) return undefined
      const { at, asked, key } = toQuestion(call)
      const set = isBinary(call) ? undefined : peekRecordSet(call.memory, key)
      if (set === undefined) return undefined
      const answer = answerFromSet(set, asked, call.representation, call.memory.bodies.take)
      return { ...toAnswer(call.representation, answer, at), isQuick: true }
    },
    handle: async (call) => {
      const { at, asked, key: ofAnyTime } = toQuestion(call)
      const moment = await list.toMoment?.(call)
      const key = moment === undefined ? ofAnyTime : `${ofAnyTime} ${moment.from}`
      const known = toSource(call, at)
      const source = { ...known, params: { ...known.params, ...moment?.params } }
      const set = isBinary(call) ? undefined : await findRecordSet(call, { key, datasets: list.datasets }, source)
      const answer =
        set === undefined
          ? await answerFromDatabase(call, source, asked)
          : answerFromSet(set, asked, call.representation)
      const told = toAnswer(call.representation, answer, at)
      return moment?.until === undefined ? told : { ...told, expiresAt: moment.until }
    },
  })
  return { ...route, record: list.record, toSource }
}

const isBinary = ({ representation }: { readonly representation: Representation }) =>
  FORMATS[representation.format].isBinary

/** Whether something was listed at a moment: what is live, and what ended later. */
export const wasThere = ({ live, until }: Listable, at: number) =>
  live || (until !== undefined && isThereAt({ until }, at))
