import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { JSON_SETTINGS } from '../answers/written-json.ts'
import type { Filter } from '../parameters/questions.ts'
import { answerRecords } from '../records/answer.ts'
import { MEMBER_TYPES } from '../records/members.ts'
import type { Representation } from '../records/representation.ts'
import type { Asked, ListAnswer } from './in-memory.ts'
import type { ListedRecord } from './record-set.ts'

/** Where a list's records are read. */
export interface ListSource {
  readonly name: string
  /** Selects `key`, `name`, `market_cap`, `as_of` and `record` of all or of some keys (parameters `all` and `keys`). */
  readonly sql: string
  readonly params: Readonly<Record<string, unknown>>
  /** The keys of those that were there at the moment asked for; all that there are unless it is given. */
  readonly there: readonly number[] | undefined
}

const END = '{"end":true}'

/**
 * All records of a list in its order, as ClickHouse writes them.
 * @throws DataError `storage`
 */
export async function* readListed(db: Database, source: ListSource): AsyncGenerator<ListedRecord> {
  const stream = await db.stream({
    name: `${source.name}-records`,
    // The last row says that the list is whole: ClickHouse may break off in the middle of one that it has begun.
    sql: `SELECT key, as_of, market_cap, record FROM
(
  SELECT 0 AS is_end, key, toUnixTimestamp64Milli(as_of) AS as_of, market_cap, name, toJSONString(record) AS record FROM (${source.sql})
  UNION ALL SELECT 1, 0, 0, NULL, '', '${END}'
)
ORDER BY is_end, isNull(market_cap), -ifNull(market_cap, 0), name, key`,
    params: { ...source.params, all: source.there === undefined, keys: source.there ?? [] },
    format: 'TSVRaw',
    settings: JSON_SETTINGS,
  })
  let isWhole = false
  for await (const line of toLines(stream, source.name)) {
    const [key = '', asOf = '', marketCap = '', json = ''] = line.split('\t')
    isWhole = json === END
    if (!isWhole)
      yield {
        key: Number(key),
        asOf: Number(asOf),
        marketCap: marketCap === '\\N' ? null : Number(marketCap),
        bytes: Buffer.from(json),
      }
  }
  if (!isWhole) throw toBrokenOff(source.name, new Error('its end is missing'))
}

/** What passes, because the database went away in between: the client may come back. */
const toBrokenOff = (name: string, cause: unknown) =>
  new DataError('storage', `ClickHouse, ${name}: the list of records broke off`, { cause })

/** Lines end with a line break and nothing else: a text may hold what other systems break lines with. */
async function* toLines(stream: AsyncIterable<Buffer>, name: string): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for await (const bytes of stream) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      yield* lines
    }
  } catch (cause) {
    throw toBrokenOff(name, cause)
  }
}

/** Conditions on members as a WHERE has them, with their literals as parameters. */
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

/** Those of the selected keys that were there. */
function toKeys({ selection }: Asked, { there }: ListSource) {
  if (there === undefined) return { all: selection.all, keys: selection.keys }
  const selected = new Set(selection.keys)
  return { all: false, keys: selection.all ? there : there.filter((key) => selected.has(key)) }
}

/**
 * A list's answer as ClickHouse orders, filters and writes it: what `answerFromSet` gives from memory.
 * @throws DataError `storage`
 */
export async function answerFromDatabase(
  { db, representation }: { db: Database; representation: Representation },
  source: ListSource,
  asked: Asked,
): Promise<ListAnswer> {
  const { keyset, filters, limit } = asked
  const { after } = representation
  if (after !== '') keyset.read(after)
  const conditions = toConditions(filters)
  const params = { ...source.params, ...conditions.params, ...toKeys(asked, source), exact: asked.selection.exact }
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
        page: limit ?? 0,
      },
    ),
    db.rows({
      name: `${source.name}-count`,
      sql: `SELECT count() AS total FROM (${source.sql}) WHERE true${conditions.sql}`,
      params,
      settings: { max_threads: 1 },
      schema: counted,
    }),
  ])
  return { ...answer, total: counts[0]?.total ?? 0 }
}
