import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { type Rows, toRows } from '../answers/rows.ts'
import { JSON_SETTINGS, readWritten } from '../answers/written-json.ts'

export interface RowsStatement {
  readonly name: string
  /**
   * Selects `record` (a named tuple, the row), `row_at` (DateTime64(3), the time by which rows are ordered) and `as_of`
   * (DateTime64(3)) in the requested order.
   */
  readonly sql: string
  readonly params: Readonly<Record<string, unknown>>
}

const numbers = z.array(z.number())
const head = z.tuple([numbers, numbers, numbers])

/**
 * Reads rows with their JSON as ClickHouse writes it, in one statement with their lengths and times.
 * @throws DataError `storage`
 */
export async function writeRows(db: Database, { sql, ...statement }: RowsStatement): Promise<Rows> {
  const written = await readWritten(db, {
    ...statement,
    sql: `SELECT concat(toJSONString(tuple(groupArray(length(row)), groupArray(toUnixTimestamp64Milli(row_at)), groupArray(toUnixTimestamp64Milli(as_of)))),
  '\\n', arrayStringConcat(groupArray(row), ','))
FROM (SELECT row_at, as_of, toJSONString(record) AS row FROM (${sql}))`,
    settings: JSON_SETTINGS,
    signal: AbortSignal.timeout(db.answerTimeoutMs),
  })
  const parsed = head.safeParse(written.head)
  const [lengths, at, asOf] = parsed.data ?? [[], [], []]
  const starts = toStarts(lengths)
  const whole = lengths.length === 0 ? 0 : (starts.at(-1) ?? 0) - 1
  if (!parsed.success || written.body.length !== whole) {
    throw new DataError('storage', `ClickHouse, ${statement.name}: an answer of an unexpected shape`)
  }
  return toRows(written.body, starts, Float64Array.from(at), Float64Array.from(asOf))
}

/** Start offsets of rows with these lengths, separated by commas. */
function toStarts(lengths: readonly number[]): Uint32Array {
  const starts = new Uint32Array(lengths.length + 1)
  for (const [row, length] of lengths.entries()) starts[row + 1] = (starts[row] ?? 0) + length + 1
  return starts
}
