import { buffer } from 'node:stream/consumers'
import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import type { Database, Statement } from '../../shared/store/store.ts'
import type { Sized } from '../cache/chunks.ts'
import { hasFailed, toBrokenOff } from './answer.ts'
import { JSON_RECORDS, toJsonSql } from './representation.ts'

/** Rows of a series as JSON, ordered by time. */
export interface Rows extends Sized {
  /** The rows as ClickHouse writes them, separated by commas. */
  readonly bytes: Buffer
  /** Start offset of each row, and of the next row after the last. */
  readonly starts: Uint32Array
  /** The time of a row by which the series is ordered, in Unix milliseconds. */
  at(row: number): number
  /** The time of the newest value in a row, in Unix milliseconds. */
  asOf(row: number): number
}

const countRows = ({ starts }: Rows) => starts.length - 1

/** Memory of some rows and their offsets, in bytes. */
const toSize = (bytes: Buffer, starts: Uint32Array) => bytes.length + starts.byteLength

/** Builds rows with their times. */
export function toRows(bytes: Buffer, starts: Uint32Array, at: Float64Array, asOf: Float64Array): Rows {
  return {
    bytes,
    starts,
    at: (row) => at[row] as number,
    asOf: (row) => asOf[row] as number,
    size: toSize(bytes, starts) + at.byteLength + asOf.byteLength,
  }
}

/** Rows of a chunk from `first` to `end`, exclusive. */
export interface Slice {
  readonly rows: Rows
  readonly first: number
  readonly end: number
}

/**
 * Finds the first row that meets a condition by binary search; returns the number of rows if there is none. If a row meets
 * the condition, all later rows must meet it.
 */
function findRow(rows: Rows, holds: (at: number) => boolean): number {
  let [low, high] = [0, countRows(rows)]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (holds(rows.at(middle))) high = middle
    else low = middle + 1
  }
  return low
}

/** The rows, oldest first, with times in the range. */
export function toSlice(rows: Rows, { from, to }: { from: number; to: number }): Slice {
  const [first, end] = [findRow(rows, (at) => at >= from), findRow(rows, (at) => at >= to)]
  return { rows, first: Math.min(first, end), end }
}

/** One thread is enough to write JSON for a client. */
export const JSON_SETTINGS = { ...JSON_RECORDS, max_threads: 1 }

const head = z.tuple([z.int(), z.int(), z.string()])

interface WrittenArray {
  /** The JSON array as ClickHouse wrote it. */
  readonly body: Buffer
  readonly records: number
  /** Newest `as_of` in Unix milliseconds, null for an empty array. */
  readonly asOf: number | null
  /** The last record's `page_key` if more records follow; else an empty text. */
  readonly next: string
}

interface ArrayStatement {
  readonly name: string
  readonly sql: string
  readonly params?: Readonly<Record<string, unknown>>
  /** Maximum records of the page. Default: all. */
  readonly page?: number
}

/** The newest time, the sort values of the last record if more follow, and the elements. */
function toParts(page: number | undefined): { records: string; asOf: string; next: string; elements: string } {
  if (page === undefined) {
    return { records: 'count()', asOf: 'max(as_of)', next: "''", elements: 'groupArray(record)' }
  }
  const first = (column: string) => `groupArray(${page})(${column})`
  return {
    records: `least(count(), ${page})`,
    asOf: `arrayMax(${first('as_of')})`,
    next: `if(count() > ${page}, toJSONString(${first('page_key')}[-1]), '')`,
    elements: first('record'),
  }
}

/**
 * Returns a JSON array written by ClickHouse in one statement, with its length and the newest time used. `sql` selects
 * `record` (a named tuple, the element) and `as_of` (DateTime64(3)) in the requested order; for a page also `page_key`,
 * and one row more than the page contains.
 * @throws DataError `storage`
 */
export async function writeArray(db: Database, { page, ...statement }: ArrayStatement): Promise<WrittenArray> {
  const { records: count, asOf: newest, next: last, elements } = toParts(page)
  const written = await readWritten(db, {
    ...statement,
    sql: `SELECT concat(toJSONString(tuple(${count}, toUnixTimestamp64Milli(${newest}), ${last})), '\\n', ${toJsonSql(elements)})
FROM (${statement.sql})`,
    settings: JSON_SETTINGS,
    signal: AbortSignal.timeout(db.answerTimeoutMs),
  })
  const { body } = written
  const parsed = head.safeParse(written.head)
  if (!parsed.success || body.at(-1) !== ']'.charCodeAt(0)) {
    throw new DataError('storage', `ClickHouse, ${statement.name}: an answer of an unexpected shape`)
  }
  const [records, asOf, next] = parsed.data
  return { body, records, asOf: records === 0 ? null : asOf, next }
}

/**
 * Reads the one text that a statement selects: a line of JSON, then the unparsed rest.
 * @throws DataError `storage`
 */
export async function readWritten(db: Database, statement: Statement): Promise<{ head: unknown; body: Buffer }> {
  const bytes = await readAnswer(db, { ...statement, format: 'RawBLOB' })
  const newline = bytes.indexOf('\n')
  return {
    head: newline < 0 ? undefined : JSON.parse(bytes.toString('utf8', 0, newline)),
    body: bytes.subarray(newline + 1),
  }
}

/**
 * Reads all bytes of an answer.
 * @throws DataError `storage`
 */
export async function readAnswer(db: Database, statement: Statement & { format: string }): Promise<Buffer> {
  const bytes = await buffer(await db.stream(statement))
  if (hasFailed(bytes)) throw toBrokenOff(statement.name, 'it ends in the text of a failure')
  return bytes
}
