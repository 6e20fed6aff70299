import type { Database } from '../../shared/store/store.ts'
import type { Answer } from './answer.ts'
import { type Representation, toDisposition } from './representation.ts'
import { writeArray } from './rows.ts'
import { type RecordSource, writeTable } from './table.ts'

/** The source with a record of only the requested members. */
function pick(source: RecordSource, { fields, hasAllFields }: Representation): RecordSource {
  if (hasAllFields) return source
  const values = fields.map((name) => `tupleElement(record, '${name}')`)
  const types = fields.map((name, index) => `'${name} ', toTypeName(${values[index]})`).join(", ', ', ")
  const key = source.page === undefined ? '' : ', page_key'
  return {
    ...source,
    sql: `SELECT as_of${key}, CAST(tuple(${values.join(', ')}), concat('Tuple(', ${types}, ')')) AS record FROM (${source.sql})`,
  }
}

/** The source with the parameters of its page: one additional row shows whether more follow. */
function toPage(source: RecordSource, { after }: Representation): RecordSource {
  if (source.page === undefined) return source
  return { ...source, params: { ...source.params, ...(after === '' ? {} : { after }), limit: source.page + 1 } }
}

/**
 * A route's records in the requested form: format, members and page. With `isLong`, JSON is streamed instead of cached.
 * @throws DataError `storage`
 */
export async function answerRecords(
  { db, representation }: { db: Database; representation: Representation },
  source: RecordSource,
  options: { isLong?: boolean } = {},
): Promise<Answer & { records: number; next: string; headers: Record<string, string> }> {
  const paged = toPage(source, representation)
  const isCachedJson = representation.format === 'json' && options.isLong !== true
  const answer = isCachedJson
    ? await writeArray(db, pick(paged, representation))
    : await writeTable(db, representation, paged)
  const link = answer.next === '' ? {} : { Link: representation.nextLink(answer.next) }
  return { ...answer, headers: { ...link, ...toDisposition(representation) } }
}
