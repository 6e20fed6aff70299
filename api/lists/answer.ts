import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { HISTORY_START } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import type { CacheReader, Sized } from '../cache/cache.ts'
import {
  type Answer,
  answerRecords,
  FORMATS,
  JSON_SETTINGS,
  type Representation,
  toBrokenOff,
  toDisposition,
  toJsonSql,
  writeRecords,
} from '../formats/formats.ts'
import type { LIST_HEADERS } from '../http/headers.ts'
import { time } from '../parameters/kinds.ts'
import { Problem } from '../problem/problem.ts'
import {
  createRecordSet,
  type JsonRecordSet,
  type ListedRecord,
  type ListPage,
  type ListQuery,
  type RecordSet,
  selectPage,
  toTexts,
} from './engine.ts'

/** The parameter `asOf` of lists (docs/contract.md, section 8). */
export const asOfParameter = {
  asOf: time(
    'The records as of this time: the last observation at or before it, unless that was stale by then. Values that were not stored then are null. Changes are computed from the stored series; without this parameter they are the ones that the provider reports.',
    '2024-01-01T00:00:00Z',
    { earliest: HISTORY_START },
  ).optional(),
}

/** @throws Problem `invalid_parameter` if the moment is in the future. */
export function checkPast(asOf: number | undefined, now: number): void {
  if (asOf === undefined || asOf <= now) return
  throw new Problem('invalid_parameter', 'asOf must not be in the future.', { param: 'asOf' })
}

/** The headers of a list response. */
export function toListHead(
  { total, next }: Pick<ListPage, 'total' | 'next'>,
  representation: Representation,
): { headers: Record<string, string> & Record<keyof typeof LIST_HEADERS, string> } {
  return {
    headers: {
      'X-Total-Count': String(total),
      ...(next === '' ? {} : { Link: representation.nextLink(next) }),
      ...toDisposition(representation),
    },
  }
}

/** The statement that loads the records of a list. */
export interface ListSource {
  /** The name of its statements in logs and traces. */
  readonly name: string
  /** Equal for requests that the same records answer. */
  readonly key: string
  /** A change event of one of these drops the cached records. */
  readonly datasets: readonly DatasetFacts[]
  /** Selects `key`, `name`, `market_cap`, `as_of` and `record`, of all records or of some keys (parameters `all`, `keys`). */
  readonly sql: string
  readonly params: Readonly<Record<string, unknown>>
  /** The keys of the records that belong to the list; by default all that the statement selects. */
  readonly there?: (() => readonly number[]) | undefined
}

interface CachedSet<S extends RecordSet> extends Sized {
  readonly set: S
}

/**
 * The records of a list: synchronously if they are in memory, else loaded with one statement, which concurrent requests
 * share. The records stay in memory until a dataset of the list changes or other data needs the space; a list that is
 * larger than the cache is loaded for each request.
 * @throws DataError `storage`, and the reason of `signal`.
 */
export function loadRecords(reader: CacheReader, source: ListSource): JsonRecordSet | Promise<JsonRecordSet> {
  return loadSet(reader, source, async (rows) => {
    const records: ListedRecord[] = []
    for await (const record of rows) records.push(record)
    return createRecordSet(records)
  })
}

/** Like `loadRecords`, with the records in the form that `store` makes of them. */
export function loadSet<S extends RecordSet>(
  reader: CacheReader,
  source: ListSource,
  store: (rows: AsyncIterable<ListedRecord>) => Promise<S>,
): S | Promise<S> {
  const load = async (db: Database): Promise<CachedSet<S>> => {
    const set = await store(readRecords(db, source))
    return { size: set.bytes, set }
  }
  const datasets = source.datasets.map(({ name }) => name)
  const cached = reader.cache.get(`list ${source.key}`, { datasets }, load, reader)
  return cached instanceof Promise ? cached.then(({ set }) => set) : cached.set
}

const END = '{"end":true}'

/**
 * All records of a list in its default order, with the JSON that ClickHouse writes.
 * @throws DataError `storage`
 */
async function* readRecords(db: Database, { name, sql, params, there }: ListSource): AsyncGenerator<ListedRecord> {
  const stream = await db.stream({
    name: `${name}-records`,
    // ClickHouse may stop in the middle of a response, so the last row marks the end.
    sql: `SELECT key, as_of, market_cap, record FROM
(
  SELECT 0 AS is_end, key, toUnixTimestamp64Milli(as_of) AS as_of, market_cap, name, ${toJsonSql('record')} AS record FROM (${sql})
  UNION ALL SELECT 1, 0, 0, NULL, '', '${END}'
)
ORDER BY is_end, isNull(market_cap), -ifNull(market_cap, 0), name, key`,
    // `there` may be too long for a parameter.
    params: { ...params, all: true, keys: [] },
    format: 'TSVRaw',
    settings: JSON_SETTINGS,
  })
  const listed = there === undefined ? undefined : new Set(there())
  let isComplete = false
  for await (const line of readLines(stream)) {
    const [id = '', asOf = '', marketCap = '', json = ''] = line.split('\t')
    const key = Number(id)
    isComplete = json === END
    if (isComplete || listed?.has(key) === false) continue
    yield {
      key,
      asOf: Number(asOf),
      marketCap: marketCap === '\\N' ? null : Number(marketCap),
      json: Buffer.from(json),
    }
  }
  if (!isComplete) throw toBrokenOff(name, 'the last row is missing')
}

/** Splits at line feeds only: a text may contain other line separators. */
async function* readLines(stream: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
}

export const isBinary = ({ format }: Pick<Representation, 'format'>) => FORMATS[format].isBinary

export type ListAnswer = Answer & Pick<ListPage, 'total' | 'next'>

/**
 * One page in a text format.
 * @param allocate returns memory for the body.
 */
export function answerFromSet(
  set: RecordSet,
  query: ListQuery,
  representation: Representation,
  allocate?: (bytes: number) => Buffer,
): ListAnswer {
  const { records, ...page } = selectPage(set, query, representation.after)
  return { ...page, format: representation.format, body: writeRecords(toTexts(records), representation, allocate) }
}

type AnswerCall = CacheReader & { readonly db: Database; readonly representation: Representation }

/**
 * The answer of a list whose records are loaded from ClickHouse. The engine selects the page. For a binary format ClickHouse
 * writes the records of these keys, because their column types are more precise than JSON.
 * @throws DataError `storage`, Problem `invalid_parameter` for a cursor of another list, and the reason of the signal.
 */
export async function answerList(call: AnswerCall, source: ListSource, query: ListQuery): Promise<ListAnswer> {
  return answerSet(call, { ...source, set: loadRecords(call, source) }, query)
}

/** Like `answerList`, from records that are in memory or that are being loaded. */
export async function answerSet(
  { cache, db, representation }: AnswerCall,
  {
    set: setOrLoad,
    ...source
  }: Pick<ListSource, 'name' | 'sql' | 'params'> & { readonly set: RecordSet | Promise<RecordSet> },
  query: ListQuery,
): Promise<ListAnswer> {
  const isQuick = !(setOrLoad instanceof Promise)
  const set = await setOrLoad
  if (!isBinary(representation))
    return { ...answerFromSet(set, query, representation, isQuick ? cache.buffers.take : undefined), isQuick }
  const { records, total, next } = selectPage(set, query, representation.after)
  const keys = records.map(({ key }) => key)
  const written = await answerRecords(
    { db, representation },
    {
      name: source.name,
      sql: `SELECT as_of, record FROM (${source.sql}) WHERE has({keys: Array(UInt64)}, key)
ORDER BY indexOf({keys: Array(UInt64)}, key)`,
      params: { ...source.params, all: false, keys },
    },
  )
  return { ...written, total, next }
}
