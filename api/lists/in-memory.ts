import type { Answer, BytesAnswer } from '../answers/answer.ts'
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
  const isMatch = (index: number) =>
    (selection.all || keys.has((set.records[index] as ListedRecord).key)) && set.fits(index, filters)
  const found = set.inOrder(sort, keyset).filter(isMatch)
  const isExact = (index: number) => exact.has((set.records[index] as ListedRecord).key)
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

const [OPEN, BETWEEN, CLOSE, LINE_END] = ['[', ',', ']', '\n'].map((text) => Buffer.from(text)) as [
  ...[Buffer, Buffer, Buffer, Buffer],
]

/** Records in a format that needs no database, byte by byte as ClickHouse writes them. */
function writeRecords(records: readonly Buffer[], representation: Representation): Buffer {
  const { format, fields, hasAllFields, record } = representation
  if (format === 'csv') {
    const texts = records.map((bytes) => bytes.toString())
    return Buffer.from(toCsv(record, fields, texts))
  }
  const wanted = hasAllFields ? records : records.map((bytes) => Buffer.from(pick(bytes.toString(), fields)))
  if (format === 'ndjson') return Buffer.concat(wanted.flatMap((bytes) => [bytes, LINE_END]))
  const elements = wanted.flatMap((bytes, index) => (index === 0 ? [bytes] : [BETWEEN, bytes]))
  return Buffer.concat([OPEN, ...elements, CLOSE])
}

/** A list's answer from its records in memory (contract sections 2 and 8). */
export function answerFromSet(set: RecordSet, asked: Asked, representation: Representation): BytesAnswer & ListFacts {
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
    ),
    format: representation.format,
    asOf: records.length === 0 ? null : Math.max(...records.map(({ asOf }) => asOf)),
    total: found.length,
    next: last === undefined || rest.length <= page.length ? '' : keyset.write(placeOf(last)),
  }
}
