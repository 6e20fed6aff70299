import { z } from 'zod'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Answer } from '../answers/answer.ts'
import { answerRecords } from './answer.ts'
import { toJsonType } from './columns.ts'
import type { Wanted } from './wanted.ts'

/**
 * Records that the process has at hand, few and not in ClickHouse. Their JSON needs no database; in every other form
 * ClickHouse writes them like all records.
 * @throws DataError `storage`
 */
export async function answerKnown(
  { db, wanted }: { db: Database; wanted: Wanted },
  known: { name: string; records: readonly object[]; asOf: number | null },
): Promise<Answer> {
  const { name, records, asOf } = known
  const json = JSON.stringify(records)
  if (wanted.format === 'json' && wanted.hasAllFields) return { body: Buffer.from(json), asOf }
  const sql = `SELECT fromUnixTimestamp64Milli({as_of: Int64}, 'UTC') AS as_of,
  arrayJoin(JSONExtract({records: String}, $type$${toJsonType(z.array(wanted.record))}$type$)) AS record`
  const answer = await answerRecords({ db, wanted }, { name, sql, params: { records: json, as_of: asOf ?? 0 } })
  return { ...answer, asOf }
}
