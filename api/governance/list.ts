import { z } from 'zod'
import type { Database } from '../../shared/store/store.ts'
import {
  type Answer,
  answerRecords,
  defineKeyset,
  type Keyset,
  MEMBER_TYPES,
  ORDERED_CHARACTERS,
  type Representation,
} from '../formats/formats.ts'
import { emptyValue, toListHead } from '../lists/lists.ts'
import type { Filter, Questions, SortKey } from '../parameters/questions.ts'

interface LongListCall {
  readonly db: Database
  readonly representation: Representation
  readonly query: {
    readonly sort?: string | undefined
    readonly filter?: string[] | undefined
    readonly limit: number
  }
}

interface LongListSource {
  /** The name of the statements in logs and traces. */
  readonly name: string
  /** Selects `key`, `name`, which breaks ties, `as_of`, `record`, and the columns of `keyset`. */
  readonly sql: string
  /** Selects `total`, the number of records without filters, if that is less work than to count those of `sql`. */
  readonly count?: string
  readonly params: Readonly<Record<string, unknown>>
  /** The default order. */
  readonly keyset: Keyset
}

/** The order by members of the record, unknown values last, then by name and key (docs/contract.md, section 8). */
function toKeyset(sort: readonly SortKey[]): Keyset {
  const parts = sort.flatMap(({ member, isDescending }) => {
    const ordered = member.kind === 'text' ? `substringUTF8(${member.sql}, 1, ${ORDERED_CHARACTERS})` : member.sql
    const value = `ifNull(${ordered}, ${JSON.stringify(emptyValue(member)).replaceAll('"', "'")})`
    const type = MEMBER_TYPES[member.kind]
    return [
      [`toUInt8(isNull(${member.sql}))`, 'UInt8'] as const,
      isDescending ? ([value, type, 'descending'] as const) : ([value, type] as const),
    ]
  })
  return defineKeyset(...parts, ['name', 'String'], ['key', 'UInt64'])
}

/** Filters as conditions of a WHERE clause, with their literals as parameters. */
function toConditions(filters: readonly Filter[]): { sql: string; params: Record<string, number | string> } {
  const params: Record<string, number | string> = {}
  const conditions = filters.map(({ member, operator, literal }, index) => {
    if (literal === null) return operator === '=' ? `isNull(${member.sql})` : `isNotNull(${member.sql})`
    params[`literal${index}`] = literal
    return `ifNull(${member.sql} ${operator} {literal${index}: ${MEMBER_TYPES[member.kind]}}, false)`
  })
  return { sql: conditions.map((condition) => ` AND ${condition}`).join(''), params }
}

const counted = z.object({ total: z.int() })

/**
 * A page of the proposals or voters of a DAO. There are too many of them to hold in memory, so ClickHouse filters, sorts and
 * pages (docs/contract.md, section 8). The list engine does this for all other lists.
 * @throws DataError `storage`
 */
export async function answerLongList(
  { db, representation, query }: LongListCall,
  questions: Questions,
  { keyset: defaultKeyset, ...source }: LongListSource,
): Promise<Answer> {
  const sort = questions.toSort(query.sort)
  const keyset = sort.length === 0 ? defaultKeyset : toKeyset(sort)
  const conditions = toConditions(questions.toFilters(query.filter))
  const { after } = representation
  if (after !== '') keyset.read(after)
  const params = { ...source.params, ...conditions.params }
  const [answer, counts] = await Promise.all([
    answerRecords(
      { db, representation },
      {
        name: source.name,
        sql: `SELECT as_of, ${keyset.place} AS page_key, record FROM (${source.sql})
WHERE true${conditions.sql}${keyset.isAfter(after)}
ORDER BY ${keyset.order}
LIMIT {limit: UInt32}`,
        params,
        page: query.limit,
      },
    ),
    db.rows({
      name: `${source.name}-count`,
      sql:
        conditions.sql === '' && source.count !== undefined
          ? source.count
          : `SELECT count() AS total FROM (${source.sql}) WHERE true${conditions.sql}`,
      params,
      settings: { max_threads: 1 },
      schema: counted,
    }),
  ])
  return { ...answer, ...toListHead({ total: counts[0]?.total ?? 0, next: answer.next }, representation) }
}
