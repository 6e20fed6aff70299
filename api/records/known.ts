import { z } from 'zod'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Answer } from '../answers/answer.ts'
import { answerRecords } from './answer.ts'
import { toJsonType } from './columns.ts'
import type { Representation } from './representation.ts'

/**
 * Records that the process has at hand, few and not in ClickHouse. Their JSON needs no database; in every other form
 * ClickHouse writes them like all records.
 * @throws DataError `storage`
 */
export async function answerKnown(
  { db, representation }: { db: Database; representation: Representation },
  known: { name: string; records: readonly object[]; asOf: number | null },
): Promise<Answer> {
  const { name, records, asOf } = known
  const json = JSON.stringify(records)
  if (representation.format === 'json' && representation.hasAllFields) return { body: Buffer.from(json), asOf }
  const sql = `SELECT fromUnixTimestamp64Milli({as_of: Int64}, 'UTC') AS as_of,
  arrayJoin(JSONExtract({records: String}, $type$${toJsonType(z.array(representation.record))}$type$)) AS record`
  const answer = await answerRecords({ db, representation }, { name, sql, params: { records: json, as_of: asOf ?? 0 } })
  return { ...answer, asOf }
}
