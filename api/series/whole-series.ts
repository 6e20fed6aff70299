import type { Memory } from '../answers/memory.ts'
import type { Rows } from '../answers/rows.ts'
import type { Representation } from '../records/representation.ts'
import { type RowsStatement, writeRows } from './written-rows.ts'

/** Whether an answer is the whole rows as JSON, which are kept; ClickHouse writes every other one. */
export const isOfWholeRows = ({ format, hasAllFields }: Representation): boolean => format === 'json' && hasAllFields

/**
 * All rows of a short series, such as one a day: read once for every range of it, and again after a commit of its
 * dataset, which may have several series.
 * @throws DataError `storage`
 */
export async function readWhole(
  { memory, signal }: { readonly memory: Memory; readonly signal: AbortSignal },
  { dataset, series, entity }: { readonly dataset: string; readonly series: string; readonly entity: number },
  statement: RowsStatement,
): Promise<Rows> {
  const always = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY }
  const place = { key: `${series} ${entity}`, dataset, ...always }
  const [rows] = await memory.shelf<Rows>().ask([place], async (_, db) => [await writeRows(db, statement)], signal)
  return rows as Rows
}
