import type { Answer, BytesAnswer } from '../answers/answer.ts'
import type { BodyRoom } from '../answers/body-room.ts'
import type { Filter, SortKey } from '../parameters/questions.ts'
import { toCsv } from '../records/csv.ts'
import { readMembers } from '../records/json-text.ts'
import type { Keyset, Place } from '../records/keyset.ts'
import type { Representation } from '../records/representation.ts'
import type { Selection } from '../route/entities.ts'
import type { ListedRecord, RecordSet } from './record-set.ts'

/** What is asked of a list. */
export interface Asked {
  readonly selection: Selection
  readonly sort: readonly SortKey[]
  readonly filters: readonly Filter[]
  /** Of the order that is asked for. */
  readonly keyset: Keyset
  /** Most records; all of them unless it is given. */
  readonly limit?: number
}

/** A list answer, and how many records match whatever the limit. */
export type ListAnswer = Answer & ListFacts

interface ListFacts {
  readonly total: number
  /** The sort values of the last record where more follow, else an empty text. */
  readonly next: string
}

/** Indices of the records that match, in order, and each one's place. */
function match(set: RecordSet, { selection, sort, filters, keyset }: Asked) {
  const [keys, exact] = [new Set(selection.keys), new Set(selection.exact)]
  const keyOf = (index: number) => (set.records[index] as ListedRecord).key
  const ordered = set.inOrder(sort, keyset)
  const selected = selection.all ? ordered : ordered.filter((index) => keys.has(keyOf(index)))
  const found = filters.length === 0 ? selected : selected.filter((index) => set.fits(index, filters))
  const isExact = (index: number) => exact.has(keyOf(index))
  if (sort.length > 0) return { found, placeOf: (index: number) => set.placeOf(index, sort) }
  const toDefaultPlace = (index: number): Place => {
    const { marketCap } = set.records[index] as ListedRecord
    return [isExact(index) ? 0 : 1, marketCap === null ? 1 : 0, -(marketCap ?? 0), ...set.placeOf(index, [])]
  }
  const inOrder = exact.size === 0 ? found : [...found.filter(isExact), ...found.filter((index) => !isExact(index))]
  return { found: inOrder, placeOf: toDefaultPlace }
}

function pick(json: string, fields: readonly string[]): string {
  const members = readMembers(json)
  return `{${fields.map((name) => `${JSON.stringify(name)}:${members.get(name)}`).join(',')}}`
}

const [OPEN, BETWEEN, CLOSE, LINE_END] = [...'[,]\n'].map((text) => text.charCodeAt(0)) as [
  ...[number, number, number, number],
]

/** Records with a byte after each, into memory taken once: many small pieces cost more to join than to copy. */
function join(records: readonly Buffer[], between: number, first: number, take: BodyRoom['take']) {
  const bytes = take(records.reduce((sum, { length }) => sum + length + 1, first + 1))
  let length = first
  for (const record of records) {
    length += record.copy(bytes, length)
    bytes[length++] = between
  }
  return { bytes, length }
}

function toLines(records: readonly Buffer[], take: BodyRoom['take']): Buffer {
  const { bytes, length } = join(records, LINE_END, 0, take)
  return bytes.subarray(0, length)
}

function toArray(records: readonly Buffer[], take: BodyRoom['take']): Buffer {
  const { bytes, length } = join(records, BETWEEN, 1, take)
  bytes[0] = OPEN
  // The last comma gives way, where there is one.
  const end = Math.max(1, length - 1)
  bytes[end] = CLOSE
  return bytes.subarray(0, end + 1)
}

/** Records in a format that needs no database, byte by byte as ClickHouse writes them. */
function writeRecords(records: readonly Buffer[], representation: Representation, take: BodyRoom['take']): Buffer {
  const { format, fields, hasAllFields, record } = representation
  if (format === 'csv') {
    const texts = records.map((bytes) => bytes.toString())
    return Buffer.from(toCsv(record, fields, texts))
  }
  const wanted = hasAllFields ? records : records.map((bytes) => Buffer.from(pick(bytes.toString(), fields)))
  return format === 'ndjson' ? toLines(wanted, take) : toArray(wanted, take)
}

/** A list's answer from its records in memory (docs/contract.md, sections 2 and 8), written where `take` finds room. */
export function answerFromSet(
  set: RecordSet,
  asked: Asked,
  representation: Representation,
  take: BodyRoom['take'] = Buffer.allocUnsafe,
): BytesAnswer & ListFacts {
  const { keyset, limit = Number.POSITIVE_INFINITY } = asked
  const { found, placeOf } = match(set, asked)
  const after = representation.after === '' ? undefined : keyset.read(representation.after)
  const begin = after === undefined ? 0 : found.findIndex((index) => keyset.compare(placeOf(index), after) > 0)
  const rest = begin < 0 ? [] : found.slice(begin)
  const page = rest.slice(0, limit)
  const records = page.map((index) => set.records[index] as ListedRecord)
  const last = page.at(-1)
  return {
    body: writeRecords(
      records.map(({ bytes }) => bytes),
      representation,
      take,
    ),
    format: representation.format,
    asOf: records.length === 0 ? null : Math.max(...records.map(({ asOf }) => asOf)),
    total: found.length,
    next: last === undefined || rest.length <= page.length ? '' : keyset.write(placeOf(last)),
  }
}
