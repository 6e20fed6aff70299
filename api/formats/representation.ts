import type { z } from 'zod'
import { createMediaTypeChooser } from '../http/negotiation.ts'
import { Problem } from '../problem/problem.ts'
import { readCursor, writeCursor } from './keyset.ts'

export const FORMAT_NAMES = ['json', 'csv', 'ndjson', 'parquet', 'arrow'] as const
export type Format = (typeof FORMAT_NAMES)[number]

/** ClickHouse's name and settings for a format. */
interface Writing {
  /** ClickHouse's name of the format. */
  readonly name: string
  readonly settings: Readonly<Record<string, string | number>>
}

interface FormatFacts {
  readonly mediaType: string
  readonly contentType: string
  readonly extension: string
  readonly writing: Writing
  /** The last bytes of a complete body. */
  readonly ending: Buffer
  /** Whether the body is empty if there are no records. */
  readonly isEmptyWithoutRecords?: boolean
  /** Records as nested objects, or one column per value. */
  readonly shape: 'nested' | 'flat'
  /** Flat formats without lists contain them as JSON text. */
  readonly hasLists: boolean
  readonly isBinary: boolean
  /** Already compressed: content encoding would only cost time. */
  readonly isPacked: boolean
}

/** Named tuples are written as objects, without needless escapes. */
export const JSON_RECORDS = {
  output_format_json_named_tuples_as_objects: 1,
  output_format_json_escape_forward_slashes: 0,
}

/**
 * SQL for a record as JSON. `isPartial` is absent instead of null: default records have only the released members
 * (docs/contract.md, section 4). Inside of a text the quotes are escaped, so a text is never changed.
 */
export const toJsonSql = (record: string) => `replaceAll(toJSONString(${record}), ',"isPartial":null', '')`

/** Rows per Parquet row group; the writer holds one group in memory. */
const PARQUET_GROUP_ROWS = 65_536

/** The representations of records. The first one is the API's default; ClickHouse writes all of them. */
export const FORMATS: Readonly<Record<Format, FormatFacts>> = {
  json: {
    mediaType: 'application/json',
    contentType: 'application/json; charset=utf-8',
    extension: 'json',
    writing: { name: 'JSONEachRow', settings: { ...JSON_RECORDS, output_format_json_array_of_rows: 1 } },
    ending: Buffer.from(']\n'),
    shape: 'nested',
    hasLists: true,
    isBinary: false,
    isPacked: false,
  },
  csv: {
    mediaType: 'text/csv',
    contentType: 'text/csv; charset=utf-8; header=present',
    extension: 'csv',
    // An unknown value is an empty field, an empty text is "".
    writing: { name: 'CSVWithNames', settings: { ...JSON_RECORDS, format_csv_null_representation: '' } },
    ending: Buffer.from('\n'),
    shape: 'flat',
    hasLists: false,
    isBinary: false,
    isPacked: false,
  },
  ndjson: {
    mediaType: 'application/x-ndjson',
    contentType: 'application/x-ndjson; charset=utf-8',
    extension: 'ndjson',
    writing: { name: 'JSONEachRow', settings: JSON_RECORDS },
    ending: Buffer.from('\n'),
    isEmptyWithoutRecords: true,
    shape: 'nested',
    hasLists: true,
    isBinary: false,
    isPacked: false,
  },
  parquet: {
    mediaType: 'application/vnd.apache.parquet',
    contentType: 'application/vnd.apache.parquet',
    extension: 'parquet',
    writing: {
      name: 'Parquet',
      settings: {
        output_format_parquet_compression_method: 'zstd',
        output_format_parquet_row_group_size: PARQUET_GROUP_ROWS,
      },
    },
    ending: Buffer.from('PAR1'),
    shape: 'flat',
    hasLists: true,
    isBinary: true,
    isPacked: true,
  },
  arrow: {
    mediaType: 'application/vnd.apache.arrow.stream',
    contentType: 'application/vnd.apache.arrow.stream',
    extension: 'arrows',
    // Not every Arrow reader can decompress it, and the response's content encoding compresses equally well.
    writing: { name: 'ArrowStream', settings: { output_format_arrow_compression_method: 'none' } },
    // A continuation marker and a length of 0: the end of the stream.
    ending: Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
    shape: 'flat',
    hasLists: true,
    isBinary: true,
    isPacked: false,
  },
}

/** Returns the format of this name. */
export const formatByName = (name: string): Format | undefined => FORMAT_NAMES.find((format) => format === name)

const MEDIA_TYPES = FORMAT_NAMES.map((name) => FORMATS[name].mediaType)
const FORMAT_OF: ReadonlyMap<string, Format> = new Map(FORMAT_NAMES.map((name) => [FORMATS[name].mediaType, name]))
const chooseMediaType = createMediaTypeChooser(MEDIA_TYPES)

/** Returns the format that an `Accept` header prefers, JSON if it accepts any; undefined if it accepts none. */
function findFormat(accept: string | undefined): Format | undefined {
  const type = chooseMediaType(accept)
  return type === undefined ? undefined : FORMAT_OF.get(type)
}

/**
 * Like `findFormat`, for an answer.
 * @throws Problem `not_acceptable`
 */
export function chooseFormat(accept: string | undefined): Format {
  const format = findFormat(accept)
  if (format !== undefined) return format
  const detail = `This path answers with ${MEDIA_TYPES.join(', ')}.`
  throw new Problem('not_acceptable', detail, { allowed: MEDIA_TYPES })
}

/** A larger number of entities is counted instead of named. */
const MAX_NAMES = 3

const toSlug = (text: string) =>
  text
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')

/** A day, or a time without the characters that file systems reject. */
function toDay(value: unknown): string[] {
  if (typeof value !== 'number') return []
  const text = new Date(value).toISOString()
  return [text.endsWith('T00:00:00.000Z') ? text.slice(0, 10) : text.slice(0, 16).replace(':', '')]
}

/** A descriptive file name: `uniswap-5m-2024-01-01.csv`, `tokens-holders.parquet`. */
export function toFileName(facts: {
  path: string
  query: Readonly<Record<string, unknown>>
  names: readonly string[]
  format: Format
}): string {
  const { path, query, names, format } = facts
  const words = path.split('/').slice(2)
  const who = names.length > MAX_NAMES ? [`${names.length}-${words[0]}`] : names.map(toSlug)
  const what = names.length === 0 ? words : words.slice(-1)
  const parts = [...who, ...(query.interval === undefined ? what : [String(query.interval)])]
  return `${[...parts, ...toDay(query.start), ...toDay(query.end)].join('-')}.${FORMATS[format].extension}`
}

/** The requested representation of a route's records: format, members, page, and the file name. */
export interface Representation {
  readonly record: z.ZodObject
  readonly format: Format
  /** The requested members, in the record's order. */
  readonly fields: readonly string[]
  readonly hasAllFields: boolean
  /** The sort values of the last record that the client has; an empty text on a first page. */
  readonly after: string
  /** Equal for all requests with the same answer. */
  readonly key: string
  toFileName(): string
  /** The `Link` to the page after a record with these sort values. */
  nextLink(after: string): string
}

/**
 * The representation of a route's usual record, unless the answer has members of the wider one. An answer with all members
 * of its record is made from the cache.
 */
export function toUsualRecord(representation: Representation, record: z.ZodObject): Representation {
  const { fields } = representation
  if (fields.some((name) => !(name in record.shape))) return representation
  return { ...representation, record, hasAllFields: fields.length === Object.keys(record.shape).length }
}

/** The header with the name of the file, in all formats except JSON. */
export const toDisposition = ({ format, toFileName }: Representation): Record<string, string> =>
  format === 'json' ? {} : { 'Content-Disposition': `attachment; filename="${toFileName()}"` }

type Query = Readonly<Record<string, unknown>>

/** Parameters that select a part or a form of an answer and do not change its query. */
const ABOUT_THE_PAGE: ReadonlySet<string> = new Set(['limit', 'cursor', 'fields', 'format', 'bom'])

/** Sorts the parameters, so that equal queries have equal texts. */
export const toQueryKey = (path: string, query: Query) =>
  `${path}?${JSON.stringify(Object.entries(query).sort(([a], [b]) => (a < b ? -1 : 1)))}`

/** Parameters with values that may contain commas, and those that are times. */
const REPEATED: ReadonlySet<string> = new Set(['name', 'filter'])
const TIMES: ReadonlySet<string> = new Set(['start', 'end', 'asOf', 'endsBefore'])

/** Formats a parsed value as parameters: an array may become several parameters, and a time is a number here. */
function toTexts(name: string, value: unknown): string[] {
  if (Array.isArray(value)) return REPEATED.has(name) ? value.map(String) : [value.join(',')]
  if (typeof value === 'number' && TIMES.has(name)) return [new Date(value).toISOString()]
  return value === undefined ? [] : [String(value)]
}

/** `query` is the parsed query with the ids of the entities; its cursor must belong to the rest of it. */
export function toRepresentation(facts: {
  path: string
  query: Query
  format: Format
  record: z.ZodObject
  /** The names of the record's default members, unless the query names others. */
  usual: readonly string[]
  names: readonly string[]
}): Representation {
  const { path, query, format, record, usual, names } = facts
  // Computed on use: most requests have no cursor and no next page.
  const toScope = () => {
    const about = Object.fromEntries(Object.entries(query).filter(([name]) => !ABOUT_THE_PAGE.has(name)))
    return toQueryKey(path, about)
  }
  const all = Object.keys(record.shape)
  const named = query.fields as readonly string[] | undefined
  const selected = named ?? usual
  const fields = selected.length === all.length ? all : all.filter((name) => selected.includes(name))
  return {
    record,
    format,
    fields,
    hasAllFields: fields.length === all.length,
    after: query.cursor === undefined ? '' : readCursor(toScope(), String(query.cursor)),
    key: toQueryKey(path, { ...query, format }),
    toFileName: () => toFileName({ path, query, names, format }),
    nextLink: (after) => {
      const { format: _, ...rest } = query
      const next = { ...rest, ...(format === 'json' ? {} : { format }), cursor: writeCursor(toScope(), after) }
      const pairs = Object.entries(next).flatMap(([name, value]) =>
        toTexts(name, value).map((text): [string, string] => [name, text]),
      )
      return `<?${new URLSearchParams(pairs)}>; rel="next"`
    },
  }
}
