import { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Answer } from '../answers/answer.ts'
import { FORMATS } from '../answers/formats.ts'
import { LIST_HEADERS } from '../http/headers.ts'
import { toQuestions } from '../parameters/questions.ts'
import { answerRecords } from '../records/answer.ts'
import { toJsonType } from '../records/columns.ts'
import type { Representation } from '../records/representation.ts'
import { defineRoute, type Route, type Surroundings } from '../route/define-route.ts'
import { type Described, toDescribed } from '../route/described.ts'
import { asOfParameter, checkPast } from './as-of.ts'
import { toListHead } from './head.ts'
import { type Asked, answerFromSet } from './in-memory.ts'
import { toKeyset } from './keyset.ts'
import { createRecordSet } from './record-set.ts'

/** Records that the process has at hand, and the time of the newest of them in Unix milliseconds. */
export interface KnownRecords extends Pick<Answer, 'expiresAt' | 'headers'> {
  readonly records: readonly object[]
  readonly asOf: number | null
}

interface KnownList extends Described {
  /** What logs and traces call the statement that writes binary formats. */
  readonly name: string
  readonly record: z.ZodObject
  /** Whether it can be asked for as it was at a moment. */
  readonly hasPast?: boolean
  /** The records, as they were at a moment in Unix milliseconds if it is given. */
  find(surroundings: Surroundings, asOf: number | undefined): KnownRecords | Promise<KnownRecords>
  /** Whose commits change the records, where they are made of what is stored; the first one's cadence says when they are stale. */
  readonly datasets?: readonly DatasetFacts[]
  /** Headers of its own, name to description. */
  readonly headers?: Readonly<Record<string, string>>
}

export const EVERYTHING = { all: true, keys: [], exact: [] } as const

/**
 * A route that lists a few records that are not in ClickHouse as they are, never cut, in their own order unless it is asked for another one
 * (docs/contract.md, section 8). Only binary formats need the database, which writes them.
 */
export function defineKnownList(list: KnownList): Route {
  const questions = toQuestions(list.record)
  return defineRoute({
    ...toDescribed(list),
    query: { ...questions.parameters, ...(list.hasPast === true ? asOfParameter : {}) },
    record: list.record,
    datasets: list.datasets ?? [],
    headers: { ...LIST_HEADERS, ...list.headers },
    handle: async (call): Promise<Answer> => {
      const { query } = call
      const at = query.asOf as number | undefined
      checkPast(at, call.now())
      const sort = questions.toSort(query.sort)
      const filters = questions.toFilters(query.filter)
      const asked: Asked = { selection: EVERYTHING, sort, filters, keyset: toKeyset(sort) }
      const answer = await answerKnown(call, { name: list.name, ...(await list.find(call, at)) }, asked)
      return at === undefined ? answer : { ...answer, staleAt: null }
    },
  })
}

/**
 * Records at hand as they are asked for. ClickHouse writes binary formats, nothing else needs it.
 * @throws DataError `storage`
 */
export async function answerKnown(
  { db, representation }: { db: Database; representation: Representation },
  { name, records, asOf, expiresAt, headers }: KnownRecords & { readonly name: string },
  asked: Asked,
): Promise<Answer> {
  const set = createRecordSet(
    records.map((record, key) => ({
      key,
      asOf: asOf ?? 0,
      marketCap: null,
      bytes: Buffer.from(JSON.stringify(record)),
    })),
  )
  const answer = answerFromSet(set, asked, representation)
  const own = toListHead(answer, representation)
  const head = { asOf, headers: { ...own.headers, ...headers }, ...(expiresAt === undefined ? {} : { expiresAt }) }
  if (!FORMATS[representation.format].isBinary) return { ...answer, ...head }
  const wanted = answerFromSet(set, asked, { ...representation, format: 'json', hasAllFields: true })
  const type = toJsonType(z.array(representation.record))
  const written = await answerRecords(
    { db, representation },
    {
      name,
      sql: `SELECT fromUnixTimestamp64Milli({as_of: Int64}, 'UTC') AS as_of,
  arrayJoin(JSONExtract({records: String}, $type$${type}$type$)) AS record`,
      params: { records: wanted.body.toString(), as_of: asOf ?? 0 },
    },
  )
  return { ...written, ...head }
}
