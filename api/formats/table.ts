import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { z } from 'zod'
import { columnTypes } from '../../shared/record-values.ts'
import type { Database } from '../../shared/store/store.ts'
import { type Answer, inTime, MOST_CACHED, openFramed, type StreamAnswer, toStream } from './answer.ts'
import { toColumns, toSelectList } from './columns.ts'
import { FORMATS, type Representation } from './representation.ts'

const [QUOTE, BACKSLASH, COMMA, LINE_END] = [0x22, 0x5c, 0x2c, 0x0a]
const [LIST, LIST_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d]

/** The end of a JSON value that begins at `at`: a string, an object, a list, or a word. */
function endOf(text: string, at: number): number {
  const opening = text.charCodeAt(at)
  if (opening === QUOTE) return endOfString(text, at)
  if (opening !== OBJECT && opening !== LIST) {
    for (let end = at; ; end++) {
      const char = text.charCodeAt(end)
      if (char === COMMA || char === OBJECT_END || char === LIST_END || end === text.length) return end
    }
  }
  let depth = 0
  for (let end = at; ; end++) {
    const char = text.charCodeAt(end)
    if (char === QUOTE) end = endOfString(text, end) - 1
    else if (char === OBJECT || char === LIST) depth++
    else if (char === OBJECT_END || char === LIST_END) depth--
    if (depth === 0) return end + 1
  }
}

function endOfString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); ; end = text.indexOf('"', end + 1)) {
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++
    if (slashes % 2 === 0) return end + 1
  }
}

/**
 * The members of a JSON object written without spaces, by name, each as the text of its value: numbers keep their
 * digits, which parsing and serializing would not preserve.
 */
function readMembers(text: string): Map<string, string> {
  const members = new Map<string, string>()
  for (let at = 1; at < text.length - 1; ) {
    const nameEnd = endOfString(text, at)
    const valueEnd = endOf(text, nameEnd + 1)
    members.set(JSON.parse(text.slice(at, nameEnd)) as string, text.slice(nameEnd + 1, valueEnd))
    at = valueEnd + 1
  }
  return members
}

const quote = (text: string) => `"${text.replaceAll('"', '""')}"`

/** Converts a value's JSON to CSV: unknown is an empty field, a list is JSON in quotes. */
function toCell(json: string): string {
  if (json === 'null') return ''
  const opening = json.charCodeAt(0)
  // Without a backslash a text contains no quotes, and is the same in CSV.
  if (opening === QUOTE) return json.includes('\\') ? quote(JSON.parse(json) as string) : json
  return opening === LIST ? quote(json) : json
}

/** A member of an object in JSON: the text before its value, and the members of the value if it is an object. */
interface JsonMember {
  readonly name: string
  readonly before: string
  readonly inner: readonly JsonMember[] | undefined
  readonly isWritten: boolean
}

function toJsonMembers(schema: z.ZodType, fields?: readonly string[]): readonly JsonMember[] | undefined {
  const inner = schema instanceof z.ZodNullable ? schema.unwrap() : schema
  if (!(inner instanceof z.ZodObject)) return undefined
  return Object.entries(inner.shape as z.ZodRawShape).map(([name, one]) => ({
    name,
    before: `${JSON.stringify(name)}:`,
    inner: toJsonMembers(one as z.ZodType),
    isWritten: fields?.includes(name) ?? true,
  }))
}

/**
 * Adds the cells of a value that begins at a position. Returns its end. Usually members are in the order of their schema;
 * any other member is found by its name.
 */
function addCells(cells: string[], members: readonly JsonMember[] | undefined, json: string, at: number): number {
  if (members === undefined) {
    const end = endOf(json, at)
    cells.push(toCell(json.slice(at, end)))
    return end
  }
  const isThere = json.charCodeAt(at) === OBJECT
  let byName: ReadonlyMap<string, string> | undefined = isThere ? undefined : new Map()
  let end = at
  for (const { name, before, inner, isWritten } of members) {
    const value = end + 1 + before.length
    if (isThere && json.startsWith(before, end + 1)) {
      end = isWritten ? addCells(cells, inner, json, value) : endOf(json, value)
      continue
    }
    byName ??= readMembers(json.slice(at, endOf(json, at)))
    if (isWritten) addCells(cells, inner, byName.get(name) ?? 'null', 0)
  }
  return byName === undefined ? end + 1 : endOf(json, at)
}

/** Converts records from JSON to CSV, byte for byte as ClickHouse writes it (`CSVWithNames`). */
function toCsv(record: z.ZodObject, fields: readonly string[], records: readonly string[]): string {
  const columns = toColumns(record, fields, { shape: 'flat', hasLists: false })
  const members = toJsonMembers(record, fields)
  const lines = records.map((json) => {
    const cells: string[] = []
    addCells(cells, members, json, 0)
    return cells.join(',')
  })
  return [columns.map(({ name }) => quote(name)).join(','), ...lines, ''].join('\n')
}

function pickFields(json: string, fields: readonly string[]): string {
  const members = readMembers(json)
  return `{${fields.map((name) => `${JSON.stringify(name)}:${members.get(name) ?? 'null'}`).join(',')}}`
}

/** Returns a buffer of the given length. Its content is undefined. */
type Allocate = (bytes: number) => Buffer

/** Copies records into one buffer from `start` on, each with a byte after it. Joining many small buffers costs more. */
function joinRecords(records: readonly Buffer[], separator: number, start: number, allocate: Allocate) {
  const bytes = allocate(records.reduce((sum, { length }) => sum + length + 1, start + 1))
  let length = start
  for (const record of records) {
    length += record.copy(bytes, length)
    bytes[length++] = separator
  }
  return { bytes, length }
}

function toLines(records: readonly Buffer[], allocate: Allocate): Buffer {
  const { bytes, length } = joinRecords(records, LINE_END, 0, allocate)
  return bytes.subarray(0, length)
}

function toArray(records: readonly Buffer[], allocate: Allocate): Buffer {
  const { bytes, length } = joinRecords(records, COMMA, 1, allocate)
  bytes[0] = LIST
  // The closing bracket replaces the last comma, if there is one.
  const end = Math.max(1, length - 1)
  bytes[end] = LIST_END
  return bytes.subarray(0, end + 1)
}

/** Writes records, given as JSON, as JSON, NDJSON or CSV, with the same bytes as ClickHouse. */
export function writeRecords(
  records: readonly Buffer[],
  { format, fields, hasAllFields, record }: Pick<Representation, 'format' | 'fields' | 'hasAllFields' | 'record'>,
  allocate: Allocate = Buffer.allocUnsafe,
): Buffer {
  if (format === 'csv') return Buffer.from(toCsv(record, fields, records.map(String)))
  const selected = hasAllFields ? records : records.map((json) => Buffer.from(pickFields(json.toString(), fields)))
  return format === 'ndjson' ? toLines(selected, allocate) : toArray(selected, allocate)
}

export type MemberKind = 'number' | 'text' | 'time' | 'boolean'

/** The ClickHouse types of a member's `sql`. */
export const MEMBER_TYPES = {
  number: 'Float64',
  text: 'String',
  time: 'Int64',
  boolean: 'UInt8',
} as const satisfies Readonly<Record<MemberKind, string>>

/** A value of a record for sorting and filtering. */
export interface Member {
  /** The member names from the record to the value, separated by dots: `financialData.marketCap`. */
  readonly path: string
  readonly kind: MemberKind
  readonly isNullable: boolean
  /**
   * SQL for its value in a row with `record`: a float, Unix milliseconds, 0 or 1, or a text in lower case, like
   * `toComparable`.
   */
  readonly sql: string
}

function toKind(schema: z.ZodType): MemberKind {
  if (schema instanceof z.ZodNumber) return 'number'
  if (schema instanceof z.ZodBoolean) return 'boolean'
  return columnTypes.get(schema)?.type.startsWith('DateTime64') ? 'time' : 'text'
}

const TO_SQL: Readonly<Record<MemberKind, (sql: string) => string>> = {
  number: (sql) => `toFloat64(${sql})`,
  time: (sql) => `toUnixTimestamp64Milli(${sql})`,
  boolean: (sql) => `toUInt8(${sql})`,
  text: (sql) => `lowerUTF8(toString(${sql}))`,
}

/** The members of a record by path, without lists and their items (docs/contract.md, section 8). */
export function toMembers(record: z.ZodObject): ReadonlyMap<string, Member> {
  const columns = toColumns(record, Object.keys(record.shape), { shape: 'flat', hasLists: true })
  return new Map(
    columns
      .filter(({ schema }) => !(schema instanceof z.ZodArray))
      .map(({ path, schema, isNullable, sql }) => {
        const kind = toKind(schema)
        return [path.join('.'), { path: path.join('.'), kind, isNullable, sql: TO_SQL[kind](sql) }]
      }),
  )
}

/**
 * A member's value for comparison: times as Unix milliseconds, booleans as 0 or 1, text in lower case; null is unknown.
 */
export function toComparable(record: unknown, { path, kind }: Member): number | string | null {
  let value = record
  for (const name of path.split('.')) value = (value as Record<string, unknown> | null)?.[name] ?? null
  if (value === null) return null
  if (kind === 'time') return Date.parse(String(value))
  return kind === 'text' ? String(value).toLowerCase() : Number(value)
}

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

const collect = (answer: StreamAnswer, timeoutMs: number): Promise<Buffer> =>
  inTime(timeoutMs, async (signal) => buffer(Readable.from(await openFramed(answer, signal))))

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
  const { writing, ending, isEmptyWithoutRecords, shape, hasLists } = FORMATS[representation.format]
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
    ending: records === 0 && isEmptyWithoutRecords ? null : ending,
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
  return records > MOST_CACHED.tableRecords ? answer : { ...facts, body: await collect(answer, db.answerTimeoutMs) }
}
