import type { Memory } from '../answers/memory.ts'
import type { Rows } from '../answers/rows.ts'
import type { Representation } from '../records/representation.ts'
import { type RowsStatement, writeRows } from './written-rows.ts'

/** Whether an answer consists of complete rows as JSON, which are cached; ClickHouse writes all other forms. */
export const isOfWholeRows = ({ format, hasAllFields }: Representation): boolean => format === 'json' && hasAllFields

/**
 * Reads all rows of a short series, such as a daily one: once for all ranges, and again after a change event of
 * the dataset, which may have several series.
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
