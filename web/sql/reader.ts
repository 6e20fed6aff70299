// Reads the rows and columns of a Parquet file that a query needs, and sends them as Arrow. Runs in a separate worker,
// because decoding takes longer than a frame.

import type { DataType } from 'apache-arrow'
import {
  Bool,
  type Builder,
  DateDay,
  Field,
  Float64,
  Int64,
  List,
  makeBuilder,
  makeData,
  Null,
  Table,
  TimestampMillisecond,
  tableToIPC,
  Uint64,
  Utf8,
  Vector,
} from 'apache-arrow'
import { type AsyncBuffer, asyncBufferFromUrl, type FileMetaData, parquetMetadataAsync, parquetScan } from 'hyparquet'
import { decompressZstd } from 'hyparquet-compressors'
import type { RowFilter } from './views.ts'

/** The rows and columns of a file to read. */
export interface ReadRequest {
  readonly url: string
  /** Size of the file. */
  readonly bytes: number
  /** All columns of the table with their DuckDB types. Columns that are not needed are null. */
  readonly columns: readonly { readonly name: string; readonly type: string; readonly isNeeded: boolean }[]
  /** Only rows that satisfy one of the filters are read; undefined for all rows. */
  readonly filters: readonly RowFilter[] | undefined
  /** Number of rows to read from the start of the file; undefined for all. */
  readonly most: number | undefined
  /** Only the size of the needed rows is read. */
  readonly isOnlySize: boolean
}

/** An Arrow stream of some rows, the compressed size of all needed rows, the end of the file, or why it cannot be read. */
export type ReadReply =
  | { readonly arrow: Uint8Array }
  | { readonly size: number }
  | { readonly isEnd: true }
  | { readonly failure: string }

/**
 * Published files use only this compression. The package's other ones would need WebAssembly in this worker. Without the
 * output, the package would move a window of megabytes for each block of a page.
 */
const compressors = { ZSTD: (input: Uint8Array, length: number) => decompressZstd(input, new Uint8Array(length)) }

/** Rows of one Arrow stream. */
const ROWS = 122_880

/** Files up to this size are read with one request: as many bytes as arrive in the time of another request. */
const WHOLE_BYTES = 300_000
/** Bytes that are read from the end of a larger file: they contain the footer. */
const FOOTER_BYTES = 65_536
/** Unneeded bytes between two columns that are read rather than sending another request. */
const GAP_BYTES = 100_000

const ARROW_TYPES: Readonly<Record<string, () => DataType>> = {
  VARCHAR: () => new Utf8(),
  DOUBLE: () => new Float64(),
  DATE: () => new DateDay(),
  TIMESTAMP: () => new TimestampMillisecond(),
  BOOLEAN: () => new Bool(),
  BIGINT: () => new Int64(),
  UBIGINT: () => new Uint64(),
}

function toArrowType(type: string): DataType {
  if (type.endsWith('[]')) return new List(new Field('item', toArrowType(type.slice(0, -2)), true))
  // DuckDB parses decimals, which keeps all their digits.
  return (ARROW_TYPES[type] ?? (() => new Utf8()))()
}

/** The text of a decimal's unscaled value: big-endian bytes, or an integer. */
function toDecimalText(value: unknown, scale: number): string {
  const number =
    value instanceof Uint8Array
      ? BigInt.asIntN(
          8 * value.length,
          value.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n),
        )
      : BigInt(value as number | bigint)
  const digits = String(number < 0n ? -number : number).padStart(scale + 1, '0')
  return `${number < 0n ? '-' : ''}${digits.slice(0, digits.length - scale)}.${digits.slice(digits.length - scale)}`
}

/** Converts the values of a column with this DuckDB type to those that Arrow has for them. */
function toConverter(type: string): (value: unknown) => unknown {
  if (type.endsWith('[]')) {
    const convert = toConverter(type.slice(0, -2))
    return (value) =>
      (value as unknown[]).map((one) => {
        if (one === null || one === undefined) throw new Error('a list with a missing value')
        return convert(one)
      })
  }
  const [, scale] = /^DECIMAL\(\d+, ?(\d+)\)$/.exec(type) ?? []
  if (scale !== undefined) return (value) => toDecimalText(value, Number(scale))
  return type === 'BIGINT' || type === 'UBIGINT' ? (value) => BigInt(value as number | bigint) : (value) => value
}

/** Decimals without their type: the library would convert them to floating point. */
function withRawDecimals(metadata: FileMetaData): FileMetaData {
  const schema = metadata.schema.map((element) => {
    if (element.converted_type !== 'DECIMAL') return element
    const { converted_type: _converted, logical_type: _logical, ...raw } = element
    return raw
  })
  return { ...metadata, schema }
}

/** Calls `fetch` and explains failures. */
async function fetchFile(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(input, init)
  if (response.ok) return response
  throw new Error(
    `${input}: the service answered ${response.status}. A newer publication may have replaced it: load the page again.`,
  )
}

/** Reads ranges of a file with one request for each run of ranges that are close to each other. */
function fetchRanges(file: AsyncBuffer, ranges: readonly (readonly [start: number, end: number])[]): AsyncBuffer {
  const runs: { start: number; end: number; content?: Promise<ArrayBuffer> }[] = []
  for (const [start, end] of [...ranges].sort(([a], [b]) => a - b)) {
    const last = runs.at(-1)
    if (last !== undefined && start - last.end <= GAP_BYTES) last.end = Math.max(last.end, end)
    else runs.push({ start, end })
  }
  for (const run of runs) run.content = Promise.resolve(file.slice(run.start, run.end))
  return {
    byteLength: file.byteLength,
    slice: async (start, end = file.byteLength) => {
      const run = runs.find((one) => one.start <= start && end <= one.end)
      return run?.content === undefined
        ? file.slice(start, end)
        : (await run.content).slice(start - run.start, end - run.start)
    },
  }
}

async function openFile({ url, bytes }: ReadRequest): Promise<AsyncBuffer> {
  if (bytes > WHOLE_BYTES) return asyncBufferFromUrl({ url, byteLength: bytes, fetch: fetchFile })
  const content = await (await fetchFile(url)).arrayBuffer()
  return { byteLength: content.byteLength, slice: (start, end) => content.slice(start, end) }
}

/** Bytes of the needed columns in the row groups with rows of the ranges. */
function listChunks(
  { row_groups: groups }: FileMetaData,
  ranges: readonly { readonly rowStart: number; readonly rowEnd: number }[],
  names: ReadonlySet<string>,
): (readonly [start: number, end: number])[] {
  let first = 0
  return groups.flatMap((group) => {
    const [start, end] = [first, first + Number(group.num_rows)]
    first = end
    if (!ranges.some(({ rowStart, rowEnd }) => rowStart < end && rowEnd > start)) return []
    return group.columns.flatMap(({ meta_data: chunk }) => {
      if (chunk === undefined || !names.has(chunk.path_in_schema[0] ?? '')) return []
      const at = Number(chunk.dictionary_page_offset ?? chunk.data_page_offset)
      return [[at, at + Number(chunk.total_compressed_size)] as const]
    })
  })
}

type Values = ArrayLike<unknown>

/** Positions of the rows that satisfy one of the filters. */
function select(
  filters: readonly RowFilter[] | undefined,
  columns: ReadonlyMap<string, Values>,
  count: number,
): number[] {
  const all = filters?.map((filter) =>
    Object.entries(filter).map(([name, values]) => ({ column: columns.get(name), values: new Set<unknown>(values) })),
  )
  const rows: number[] = []
  for (let row = 0; row < count; row += 1) {
    const isSelected = all?.some((filter) => filter.every(({ column, values }) => values.has(column?.[row]))) ?? true
    if (isSelected) rows.push(row)
  }
  return rows
}

/** Collects the values of a column. */
interface Collector {
  /** `value` is null for a missing one. */
  set(row: number, value: unknown): void
  take(): Vector
}

const encoder = new TextEncoder()

/** Collects texts and encodes all of them at once: the library's builder encodes each, which takes four times as long. */
function collectTexts(): Collector {
  const texts: (string | null)[] = []
  const encode = () => {
    const joined = texts.join('')
    const data = encoder.encode(joined)
    if (data.length === joined.length) return { data, lengths: texts.map((text) => text?.length ?? 0) }
    const each = texts.map((text) => encoder.encode(text ?? ''))
    return { data, lengths: each.map(({ length }) => length) }
  }
  return {
    set: (row, value) => {
      texts[row] = value as string | null
    },
    take: () => {
      const { data, lengths } = encode()
      const valueOffsets = new Int32Array(texts.length + 1)
      const nullBitmap = new Uint8Array(Math.ceil(texts.length / 8))
      let nullCount = 0
      for (const [row, length] of lengths.entries()) {
        valueOffsets[row + 1] = (valueOffsets[row] as number) + length
        if (texts[row] === null) nullCount += 1
        else nullBitmap[row >> 3] = (nullBitmap[row >> 3] as number) | (1 << (row & 7))
      }
      const type = new Utf8()
      return new Vector([makeData({ type, length: texts.length, nullCount, nullBitmap, valueOffsets, data })])
    },
  }
}

function collect(type: DataType): Collector {
  if (type instanceof Utf8) return collectTexts()
  // A builder that finds missing values itself generates code, which the policy forbids.
  const builder: Builder = makeBuilder({ type })
  return {
    set: (row, value) => {
      if (value === null) builder.setValid(row, false)
      else builder.set(row, value)
    },
    take: () => builder.finish().toVector(),
  }
}

/** Collects rows for Arrow streams. */
function createRows(columns: ReadRequest['columns']) {
  const create = () => columns.map(({ type, isNeeded }) => (isNeeded ? collect(toArrowType(type)) : undefined))
  const converters = columns.map(({ type }) => toConverter(type))
  let collectors = create()
  let count = 0
  return {
    add: (values: ReadonlyMap<string, Values>, rows: readonly number[]) => {
      for (const [at, { name }] of columns.entries()) {
        const [collector, convert, column] = [collectors[at], converters[at], values.get(name)]
        if (collector === undefined || convert === undefined || column === undefined) continue
        for (const [index, row] of rows.entries()) {
          const value = column[row] ?? null
          collector.set(count + index, value === null ? null : convert(value))
        }
      }
      count += rows.length
    },
    count: () => count,
    take: (): Uint8Array => {
      const length = count
      const vectors = columns.map(({ name }, at): [string, Vector] => [
        name,
        collectors[at]?.take() ?? new Vector([makeData({ type: new Null(), length })]),
      ])
      collectors = create()
      count = 0
      return tableToIPC(new Table(Object.fromEntries(vectors)), 'stream')
    },
  }
}

async function read(request: ReadRequest): Promise<void> {
  const { columns, filters, most, isOnlySize } = request
  const file = await openFile(request)
  const metadata = withRawDecimals(await parquetMetadataAsync(file, { initialFetchSize: FOOTER_BYTES }))
  const needed = new Set([
    ...columns.flatMap(({ name, isNeeded }) => (isNeeded ? [name] : [])),
    ...(filters ?? []).flatMap(Object.keys),
  ])
  const options = {
    ...{ metadata, compressors, columns: [...needed] },
    parsers: {
      timestampFromMilliseconds: Number,
      timestampFromMicroseconds: (micros: bigint) => Number(micros / 1000n),
    },
    ...(most === undefined ? {} : { rowEnd: most }),
    ...(filters === undefined ? {} : { pruningFilter: { $or: filters.map(toPruningFilter) } }),
  }
  const { ranges } = await parquetScan({ ...options, file })
  const chunks = listChunks(metadata, ranges, needed)
  if (isOnlySize) {
    send({ size: chunks.reduce((sum, [start, end]) => sum + end - start, 0) })
    return send({ isEnd: true })
  }
  const scan = await parquetScan({ ...options, file: fetchRanges(file, chunks) })
  const rows = createRows(columns)
  const flush = () => {
    const arrow = rows.take()
    postMessage({ arrow } satisfies ReadReply, { transfer: [arrow.buffer] })
  }
  for (const range of scan.ranges) {
    const values = await Promise.all(
      [...needed].map(async (column) => [column, await scan.readColumn({ ...range, column })] as const),
    )
    const byName = new Map<string, Values>(values)
    rows.add(byName, select(filters, byName, range.rowEnd - range.rowStart))
    if (rows.count() >= ROWS) flush()
  }
  if (rows.count() > 0) flush()
  send({ isEnd: true })
}

const toPruningFilter = (filter: RowFilter) =>
  Object.fromEntries(Object.entries(filter).map(([name, values]) => [name, { $in: [...values] }]))

const send = (reply: ReadReply) => postMessage(reply)

addEventListener('message', ({ data }: MessageEvent<ReadRequest>) => {
  read(data).catch((error: unknown) => {
    send({ failure: error instanceof Error ? error.message : String(error) })
  })
})
