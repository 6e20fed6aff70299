import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { z } from 'zod'
import type { Database } from '../../shared/store/clickhouse.ts'
import { type Answer, MOST_KEPT, type StreamAnswer, toStream } from '../answers/answer.ts'
import { FORMATS } from '../answers/formats.ts'
import { openFramed } from '../answers/frame.ts'
import { toColumns, toSelectList } from './columns.ts'
import type { Representation } from './representation.ts'

/** The source of a route's records. */
export interface RecordSource {
  readonly name: string
  /**
   * Selects `record` (a named tuple) and `as_of` (DateTime64(3)) in order. A paged source also selects `page_key` and
   * takes the parameters `limit` and `after`.
   */
  readonly sql: string
  readonly params?: Readonly<Record<string, unknown>>
  /** Maximum records of the page; a source without it is not paged. */
  readonly page?: number
  /** A hash of all variable data in one row, if one exists that is cheaper than a hash of the record's JSON. */
  readonly rowHash?: string
  /** Data that `rowHash` does not cover, such as the names of tokens: another name changes the bytes. */
  readonly identity?: string
}

const summary = z.object({ records: z.int(), newest: z.int(), digest: z.string(), last: z.string(), is_cut: z.int() })

/** Number of records in a page, their newest time, their digest, and the start of the next page. */
async function summarize(db: Database, source: RecordSource) {
  const { name, sql, params, page, rowHash = 'cityHash64(toJSONString(record))' } = source
  const inPage = page === undefined ? '1' : `at < ${page}`
  const last = page === undefined ? "''" : `toJSONString(argMaxIf(page_key, at, ${inPage}))`
  const [row] = await db.rows({
    name: `${name}-summary`,
    // The row number is part of the hash: the same records in another order are other bytes.
    sql: `SELECT countIf(${inPage}) AS records, toUnixTimestamp64Milli(maxIf(as_of, ${inPage})) AS newest,
  toString(sumIf(cityHash64(at, hash), ${inPage})) AS digest, ${last} AS last, toUInt8(count() > records) AS is_cut
FROM (SELECT *, ${rowHash} AS hash, rowNumberInAllBlocks() AS at FROM (${sql}))`,
    ...(params === undefined ? {} : { params }),
    settings: FORMATS.ndjson.writing.settings,
    schema: summary,
  })
  return row ?? { records: 0, newest: 0, digest: '', last: '', is_cut: 0 }
}

async function collect(answer: StreamAnswer, timeoutMs: number): Promise<Buffer> {
  return buffer(Readable.from(await openFramed(answer, AbortSignal.timeout(timeoutMs))))
}

/**
 * Records as a table in the requested format, written by ClickHouse: short ones as bytes, long ones as a stream. `next`
 * has the sort values of the last record if more follow, else an empty text.
 * @throws DataError `storage`
 */
export async function writeTable(
  db: Database,
  representation: Representation,
  source: RecordSource,
): Promise<Answer & { records: number; next: string }> {
  const { writing, ending, isEmptyWhole, shape, hasLists } = FORMATS[representation.format]
  const { records, newest, digest, last, is_cut: isCut } = await summarize(db, source)
  // The stream is limited to the records that the digest covers: another record may be stored in between.
  const counted = { ...source, params: { ...source.params, ...(source.page === undefined ? {} : { limit: records }) } }
  const facts = {
    records,
    asOf: records === 0 ? null : newest,
    next: isCut === 1 ? last : '',
    format: representation.format,
  }
  const answer = {
    ...facts,
    digest: `${representation.key} ${source.identity ?? ''} ${records} ${newest} ${digest}`,
    before: '',
    after: '',
    ending: records === 0 && isEmptyWhole ? null : ending,
    ...toStream(db, {
      statement: {
        name: `${source.name}-${representation.format}`,
        sql: `SELECT\n  ${toSelectList(toColumns(representation.record, representation.fields, { shape, hasLists }))}\nFROM (${source.sql})`,
        params: counted.params,
        format: writing.name,
        settings: { ...writing.settings, max_threads: 1 },
      },
      digest,
      readDigest: async (bound) => (await summarize(bound, counted)).digest,
    }),
  }
  return records > MOST_KEPT.tableRecords ? answer : { ...facts, body: await collect(answer, db.answerTimeoutMs) }
}
