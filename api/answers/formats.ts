import { createMediaTypeChooser } from '../http/accept.ts'
import { Problem } from '../problem/problem.ts'

export const FORMAT_NAMES = ['json', 'csv', 'ndjson', 'parquet', 'arrow'] as const
export type Format = (typeof FORMAT_NAMES)[number]

/** What ClickHouse is told so that it writes a format as its readers expect it. */
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
  /** What a whole body ends with. */
  readonly ending: Buffer
  /** Whether a body without records has no bytes. */
  readonly isEmptyWhole?: boolean
  /** Records as objects inside objects, or one column per value. */
  readonly shape: 'nested' | 'flat'
  /** Flat formats without lists have them as JSON text. */
  readonly hasLists: boolean
  readonly isBinary: boolean
  /** Compressed by itself: encoding it once more would only cost time. */
  readonly isPacked: boolean
}

/** What clients read: named tuples as objects, no needless escapes. */
export const JSON_RECORDS = {
  output_format_json_named_tuples_as_objects: 1,
  output_format_json_escape_forward_slashes: 0,
}

/** Rows that Parquet holds together: as many as are in the memory of who writes them. */
const PARQUET_GROUP_ROWS = 65_536

/** The representations of records. The first one is the interface's own; ClickHouse writes all of them. */
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
    // Unknown is an empty field, an empty text is "".
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
    isEmptyWhole: true,
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
    // Not every reader of Arrow unpacks it; the response's own encoding does as much.
    writing: { name: 'ArrowStream', settings: { output_format_arrow_compression_method: 'none' } },
    // A continuation mark and a length of nothing: the end of the stream.
    ending: Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
    shape: 'flat',
    hasLists: true,
    isBinary: true,
    isPacked: false,
  },
}

/** The format of this name. */
export const toKnownFormat = (name: string): Format | undefined => FORMAT_NAMES.find((format) => format === name)

const MEDIA_TYPES = FORMAT_NAMES.map((name) => FORMATS[name].mediaType)
const FORMAT_OF: ReadonlyMap<string, Format> = new Map(FORMAT_NAMES.map((name) => [FORMATS[name].mediaType, name]))
const chooseMediaType = createMediaTypeChooser(MEDIA_TYPES)

/** The format that an `Accept` header asks for, JSON where it leaves the choice; undefined when it takes none. */
export function findFormat(accept: string | undefined): Format | undefined {
  const type = chooseMediaType(accept)
  return type === undefined ? undefined : FORMAT_OF.get(type)
}

/**
 * The same for an answer.
 * @throws Problem `not_acceptable`
 */
export function chooseFormat(accept: string | undefined): Format {
  const format = findFormat(accept)
  if (format !== undefined) return format
  const detail = `This path answers with ${MEDIA_TYPES.join(', ')}.`
  throw new Problem('not_acceptable', detail, { allowed: MEDIA_TYPES })
}
