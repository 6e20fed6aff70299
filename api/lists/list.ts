import type { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import { isThereAt, type Lifetime } from '../../shared/registry/ends.ts'
import { FORMATS } from '../answers/formats.ts'
import { LIST_HEADERS } from '../http/headers.ts'
import { manyReferences, page } from '../parameters/kinds.ts'
import { toQuestions } from '../parameters/questions.ts'
import { toObject } from '../records/columns.ts'
import { defineRoute, type Route } from '../route/define-route.ts'
import { daoKind, type EntityKind, manyOfKind, type Named, selectMany, tokenKind } from '../route/entities.ts'
import { asOfParameter, checkPast } from './as-of.ts'
import { toListHead } from './head.ts'
import { answerFromDatabase, type ListSource } from './in-database.ts'
import { type Asked, answerFromSet } from './in-memory.ts'
import { toKeyset } from './keyset.ts'
import { PAST_QUOTES } from './past-quotes.ts'
import { findRecordSet } from './record-sets.ts'

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

interface List {
  readonly path: string
  readonly aliases?: readonly string[]
  readonly summary: string
  readonly description: string
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
 * A route that lists live tokens or DAOs, all of them or those that are selected, in pages (contract sections 2, 3 and
 * 8). Its records are read once a commit and asked in memory; where there is no room for them, and for binary formats,
 * ClickHouse answers, the same bytes.
 */
export function defineList(list: List): Route {
  const { kind, tag, noun } = list.of
  const questions = toQuestions(list.record)
  const sql = { now: toRecordsSql(list, false), past: toRecordsSql(list, true) }
  return defineRoute({
    path: list.path,
    aliases: list.aliases ?? [],
    tag,
    summary: list.summary,
    description: list.description,
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
    handle: async (call) => {
      const { registry, config, representation, now } = call
      const { query } = call
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
      const there = at === undefined ? undefined : kind.all(registry).filter((entity) => wasThere(entity, at))
      const source: ListSource = {
        name: list.name,
        sql: at === undefined ? sql.now : sql.past,
        there: there?.map(({ key }) => key),
        params: { charts: `${config.api.publicUrl}/charts/24h/`, at },
      }
      const set = FORMATS[representation.format].isBinary
        ? undefined
        : await findRecordSet(call, { key: `${list.name} ${at ?? ''}`, datasets: list.datasets }, source)
      const answer =
        set === undefined ? await answerFromDatabase(call, source, asked) : answerFromSet(set, asked, representation)
      const isTimeless = list.isCurated === true || at !== undefined
      return { ...answer, ...toListHead(answer, representation), ...(isTimeless ? { staleAt: null } : {}) }
    },
  })
}

/** Whether something was listed at a moment: what is live, and what ended later. */
const wasThere = ({ live, until }: Listable, at: number) => live || (until !== undefined && isThereAt({ until }, at))
