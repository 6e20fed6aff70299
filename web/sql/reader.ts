// Reads a Parquet file and sends its rows as Arrow. Runs in a separate worker, because decoding takes longer than a
// frame.

import type { DataType, Vector } from 'apache-arrow'
import {
  Bool,
  Field,
  Float64,
  Int64,
  List,
  makeBuilder,
  Table,
  TimestampMillisecond,
  tableToIPC,
  Uint64,
  Utf8,
} from 'apache-arrow'
import { type FileMetaData, parquetMetadata, parquetReadObjects } from 'hyparquet'
import { decompressZstd } from 'hyparquet-compressors'

/** The file to read, with the columns to read and their DuckDB types. */
export interface ReadRequest {
  readonly url: string
  readonly columns: readonly { readonly name: string; readonly type: string }[]
}

/** An Arrow stream of some rows, the end of the file, or why it cannot be read. */
export type ReadReply = { readonly arrow: Uint8Array } | { readonly isEnd: true } | { readonly failure: string }

/** Published files use only this compression. The package's other ones would need WebAssembly in this worker. */
const compressors = { ZSTD: (input: Uint8Array) => decompressZstd(input) }

/** Rows of one Arrow stream: a row group of the published files. */
const ROWS = 122_880

const ARROW_TYPES: Readonly<Record<string, () => DataType>> = {
  VARCHAR: () => new Utf8(),
  DOUBLE: () => new Float64(),
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

function toArrowValue(value: unknown, type: string): unknown {
  if (value === null || value === undefined) throw new Error('a list with a missing value')
  if (type.endsWith('[]')) return (value as unknown[]).map((one) => toArrowValue(one, type.slice(0, -2)))
  const [, scale] = /^DECIMAL\(\d+, ?(\d+)\)$/.exec(type) ?? []
  if (scale !== undefined) return toDecimalText(value, Number(scale))
  if (type === 'BIGINT' || type === 'UBIGINT') return BigInt(value as number | bigint)
  return value
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

/** The values of a column. Builders that find missing values themselves generate code, which the policy forbids. */
function toVector(rows: readonly Readonly<Record<string, unknown>>[], name: string, type: string): Vector {
  const builder = makeBuilder({ type: toArrowType(type) })
  for (const [index, row] of rows.entries()) {
    const value = row[name] ?? null
    if (value === null) builder.setValid(index, false)
    else builder.set(index, toArrowValue(value, type))
  }
  return builder.finish().toVector()
}

async function read({ url, columns }: ReadRequest): Promise<void> {
  const response = await fetch(url)
  if (!response.ok)
    throw new Error(
      `${url}: the service answered ${response.status}. A newer publication may have replaced it: load the page again.`,
    )
  const file = await response.arrayBuffer()
  const metadata = withRawDecimals(parquetMetadata(file))
  const count = Number(metadata.num_rows)
  for (let rowStart = 0; rowStart < count; rowStart += ROWS) {
    const rows = await parquetReadObjects({
      ...{ file, metadata, compressors, rowStart, rowEnd: Math.min(count, rowStart + ROWS) },
      columns: columns.map(({ name }) => name),
      parsers: { timestampFromMilliseconds: Number, timestampFromMicroseconds: (micros) => Number(micros / 1000n) },
    })
    const vectors = columns.map(({ name, type }) => [name, toVector(rows, name, type)] as const)
    const arrow = tableToIPC(new Table(Object.fromEntries(vectors)), 'stream')
    postMessage({ arrow } satisfies ReadReply, { transfer: [arrow.buffer] })
  }
  postMessage({ isEnd: true } satisfies ReadReply)
}

addEventListener('message', ({ data }: MessageEvent<ReadRequest>) => {
  read(data).catch((error: unknown) => {
    postMessage({ failure: error instanceof Error ? error.message : String(error) } satisfies ReadReply)
  })
})
