import type { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import { page } from '../parameters/kinds.ts'
import { answerRecords } from '../records/answer.ts'
import { toObject } from '../records/columns.ts'
import { defineKeyset, type Keyset } from '../records/keyset.ts'
import { defineRoute, type Route } from '../route/define-route.ts'
import { daoKind, type EntityKind, manyOfKind, type Named, selectMany, tokenKind } from '../route/entities.ts'

/** What lists of one kind of entity have in common. */
interface Listed {
  readonly kind: EntityKind<Named>
  readonly tag: string
  /** What the records are called. */
  readonly noun: string
  /**
   * The entity's record as `alias`, with its token's latest quote as `q`, whose members are empty where there is none.
   */
  readonly from: string
  readonly alias: string
  readonly order: Keyset
}

/** Exact name matches first, then by market cap, the largest first, then by name (contract section 2). */
const toOrder = (alias: string) =>
  defineKeyset(
    [`toUInt8(NOT has({exact: Array(UInt64)}, ${alias}.key))`, 'UInt8'],
    ['toUInt8(isNull(q.market_cap))', 'UInt8'],
    ['-ifNull(q.market_cap, 0)', 'Float64'],
    [`${alias}.name`, 'String'],
    [`${alias}.key`, 'UInt64'],
  )

/** Tokens: `t` is the token's record, `q` its latest quote. */
export const listedTokens: Listed = {
  kind: tokenKind,
  tag: 'Tokens',
  noun: 'tokens',
  from: `(SELECT * FROM tokens FINAL) AS t
LEFT JOIN (SELECT * FROM token_quotes FINAL) AS q ON q.token = t.key`,
  alias: 't',
  order: toOrder('t'),
}

/** DAOs: `d` is the DAO's record, `q` the latest quote of its token. */
export const listedDaos: Listed = {
  kind: daoKind,
  tag: 'DAOs',
  noun: 'DAOs',
  from: `(SELECT * FROM daos FINAL) AS d
LEFT JOIN (SELECT * FROM token_quotes FINAL) AS q ON q.token = d.token_key`,
  alias: 'd',
  order: toOrder('d'),
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
  /** Which of the entities have a record; all unless it is given. */
  readonly where?: string
}

/**
 * A route that lists live tokens or DAOs, all of them or those that `id` and `name` select, in pages (contract sections
 * 2 and 3).
 */
export function defineList(list: List): Route {
  const { kind, tag, noun, from, alias, order } = list.of
  const record = toObject(list.record, list.values)
  const toSql = (after: string) => `
SELECT ${list.asOf} AS as_of, ${order.place} AS page_key, ${record} AS record
FROM ${from}
${list.joins ?? ''}
WHERE ${alias}.live AND ({all: Bool} OR has({keys: Array(UInt64)}, ${alias}.key))${order.isAfter(after)}
  AND (${list.where ?? 'true'})
ORDER BY ${order.order}
LIMIT {limit: UInt32}`
  return defineRoute({
    path: list.path,
    aliases: list.aliases ?? [],
    tag,
    summary: list.summary,
    description: list.description,
    query: { ...manyOfKind(kind), ...page(noun, { default: 10, max: 500 }) },
    record: list.record,
    datasets: list.datasets,
    handle: async (call) => {
      const { query, registry, config, representation } = call
      const params = { ...selectMany(kind, registry, query), charts: `${config.api.publicUrl}/charts/24h/` }
      const source = { name: list.name, sql: toSql(representation.after), params, page: query.limit }
      const answer = await answerRecords(call, source)
      return list.isCurated === true ? { ...answer, staleAt: null } : answer
    },
  })
}
