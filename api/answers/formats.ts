import { createMediaTypeChooser } from '../http/accept.ts'
import { Problem } from '../problem/problem.ts'

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
  /** Whether a complete body without records has no bytes. */
  readonly isEmptyWhole?: boolean
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
export const toKnownFormat = (name: string): Format | undefined => FORMAT_NAMES.find((format) => format === name)

const MEDIA_TYPES = FORMAT_NAMES.map((name) => FORMATS[name].mediaType)
const FORMAT_OF: ReadonlyMap<string, Format> = new Map(FORMAT_NAMES.map((name) => [FORMATS[name].mediaType, name]))
const chooseMediaType = createMediaTypeChooser(MEDIA_TYPES)

/** Returns the format that an `Accept` header prefers, JSON if it accepts any; undefined if it accepts none. */
export function findFormat(accept: string | undefined): Format | undefined {
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
