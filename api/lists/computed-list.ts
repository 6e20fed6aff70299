import { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import type { Database } from '../../shared/store/store.ts'
import { type Answer, answerRecords, type Representation, toJsonType, writeRecords } from '../formats/formats.ts'
import { LIST_HEADERS } from '../http/headers.ts'
import type { QueryShape } from '../parameters/parse.ts'
import { toQuestions } from '../parameters/questions.ts'
import {
  type Described,
  defineRoute,
  type RequestCall,
  type Route,
  toDescribed,
  type WiderRecord,
} from '../route/define-route.ts'
import { answerFromSet, asOfParameter, checkPast, isBinary, toListHead } from './answer.ts'
import { createRecordSet, EVERYTHING, type ListQuery, selectPage, toTexts } from './engine.ts'

/** Records that are computed in the process, and the time of the newest datum in Unix milliseconds. */
export interface ComputedRecords extends Pick<Answer, 'expiresAt' | 'headers'> {
  readonly records: readonly object[]
  readonly asOf: number | null
  /** The key and the market cap of each record, for a list of entities. Its records have the order of such lists. */
  readonly entities?: readonly { readonly key: number; readonly marketCap: number | null }[]
}

interface ComputedList extends Described {
  /** The name of the statement that writes binary formats, in logs and traces. */
  readonly name: string
  readonly record: z.ZodObject
  /** The record with the members that `parameters` bring. */
  readonly recordWith?: WiderRecord
  /** Parameters besides those of every list. */
  readonly parameters?: QueryShape
  /** Whether the route has `asOf`. */
  readonly hasPast?: boolean
  /** The records, as they were at `asOf` (Unix milliseconds) if it is given. */
  find(
    context: RequestCall & { readonly query: Readonly<Record<string, unknown>> },
    asOf: number | undefined,
  ): ComputedRecords | Promise<ComputedRecords>
  /** A change event of one of these changes the records. The cadence of the first decides when they are stale. */
  readonly datasets?: readonly DatasetFacts[]
  /** Additional headers, name to description. */
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * A route that lists a few records that the process computes: without pages, and in the order of `find` unless `sort` is
 * given (docs/contract.md, section 8).
 */
export function defineComputedList(list: ComputedList): Route {
  const questions = toQuestions(list.record)
  return defineRoute({
    ...toDescribed(list),
    query: { ...list.parameters, ...questions.parameters, ...(list.hasPast === true ? asOfParameter : {}) },
    record: list.record,
    ...(list.recordWith === undefined ? {} : { recordWith: list.recordWith }),
    datasets: list.datasets ?? [],
    headers: { ...LIST_HEADERS, ...list.headers },
    handle: async (call): Promise<Answer> => {
      const { query } = call
      const at = query.asOf as number | undefined
      checkPast(at, call.now())
      const sort = questions.toSort(query.sort)
      const filters = questions.toFilters(query.filter)
      const records = await list.find(call, at)
      const answer = await answerComputed(
        call,
        { name: list.name, ...records },
        { selection: EVERYTHING, sort, filters },
      )
      return at === undefined ? answer : { ...answer, staleAt: null }
    },
  })
}

/**
 * The answer of a list whose records are in memory already. Only for a binary format does it run a statement, because
 * ClickHouse writes these.
 * @throws DataError `storage`
 */
export async function answerComputed(
  { db, representation }: { db: Database; representation: Representation },
  { name, records, entities, asOf, expiresAt, headers }: ComputedRecords & { readonly name: string },
  query: ListQuery,
): Promise<Answer> {
  const set = createRecordSet(
    records.map((record, at) => ({
      ...(entities?.[at] ?? { key: at, marketCap: null }),
      asOf: asOf ?? 0,
      json: Buffer.from(JSON.stringify(record)),
    })),
  )
  const page = selectPage(set, query, representation.after)
  const own = toListHead(page, representation)
  const head = { asOf, headers: { ...own.headers, ...headers }, ...(expiresAt === undefined ? {} : { expiresAt }) }
  if (!isBinary(representation)) return { ...answerFromSet(set, query, representation), ...head }
  const json = writeRecords(toTexts(page.records), { ...representation, format: 'json', hasAllFields: true })
  const type = toJsonType(z.array(representation.record))
  const written = await answerRecords(
    { db, representation },
    {
      name,
      sql: `SELECT fromUnixTimestamp64Milli({as_of: Int64}, 'UTC') AS as_of,
  arrayJoin(JSONExtract({records: String}, $type$${type}$type$)) AS record`,
      params: { records: json.toString(), as_of: asOf ?? 0 },
    },
  )
  return { ...written, ...head }
}
