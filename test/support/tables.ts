import { tableFromIPC } from 'apache-arrow'
import { parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import { z } from 'zod'
import type { Format } from '../../api/formats/formats.ts'

type Row = Readonly<Record<string, unknown>>

/** Parses CSV text (RFC 4180). Quoted fields keep their quotes, so that an empty text differs from a missing value. */
function readCsv(text: string): Row[] {
  const lines: string[][] = [[]]
  const field = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r?\n)/gy
  for (let match = field.exec(text); match !== null; match = field.exec(text)) {
    lines.at(-1)?.push(match[1] ?? '')
    if (match[2] !== ',') lines.push([])
    if (field.lastIndex === text.length) break
  }
  const [names = [], ...rows] = lines.slice(0, -1)
  const unquote = (value: string) => value.slice(1, -1).replaceAll('""', '"')
  return rows.map((row) => Object.fromEntries(row.map((value, index) => [unquote(names[index] ?? ''), value])))
}

/** The CSV field of a value. A CSV reader has to know each column's type; here the value has it. */
function toCsvText(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return `"${text.replaceAll('"', '""')}"`
}

/** A record in a flat format: one value for each leaf, lists unsplit. */
function flatten(record: unknown, schema: z.ZodType, name = ''): Record<string, unknown> {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return flatten(record ?? null, schema.unwrap() as z.ZodType, name)
  // A value with several types is JSON text in a column of one type.
  if (schema instanceof z.ZodUnion) return { [name]: record === null ? null : JSON.stringify(record) }
  if (!(schema instanceof z.ZodObject)) return { [name]: record }
  const members = Object.entries(schema.shape as z.ZodRawShape).map(([key, one]) => {
    const value = record === null ? null : (record as Row)[key]
    return flatten(value, one as z.ZodType, name === '' ? key : `${name}_${key}`)
  })
  return Object.assign({}, ...members)
}

/** Converts values of binary readers to plain ones: big integers, times, vectors. */
function toPlain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value)
  if (value instanceof Date) return value.toISOString()
  if (value === null || value === undefined || typeof value !== 'object') return value ?? null
  if (Array.isArray(value)) return value.map(toPlain)
  if ('toArray' in value && typeof value.toArray === 'function') return [...(value.toArray() as unknown[])].map(toPlain)
  const plain = 'toJSON' in value && typeof value.toJSON === 'function' ? (value.toJSON() as object) : value
  return Object.fromEntries(Object.entries(plain).map(([name, one]) => [name, toPlain(one)]))
}

function readArrow(bytes: Buffer): Row[] {
  const table = tableFromIPC(bytes)
  const times = table.schema.fields.filter(({ type }) => String(type).startsWith('Timestamp')).map(({ name }) => name)
  return table.toArray().map((row: unknown) => {
    const plain = toPlain(row) as Record<string, unknown>
    for (const name of times) if (plain[name] !== null) plain[name] = new Date(Number(plain[name])).toISOString()
    return plain
  })
}

/**
 * Types and rows of an Arrow stream, as text. Unlike the bytes it does not depend on record batches: ClickHouse writes
 * one for each block, and the number of blocks depends on which shard answers first.
 */
export const describeArrow = (bytes: Buffer): string =>
  `${tableFromIPC(bytes).schema}\n${JSON.stringify(readArrow(bytes))}`

async function readParquet(bytes: Buffer): Promise<Row[]> {
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer
  return ((await parquetReadObjects({ file, compressors })) as unknown[]).map((row) => toPlain(row) as Row)
}

/** The rows of a body, parsed by other libraries than the API's. CSV has only texts: compare them with `toExpected`. */
export async function readTable(format: Format, bytes: Buffer): Promise<readonly unknown[]> {
  const text = () => bytes.toString('utf8')
  if (format === 'json') return JSON.parse(text()) as unknown[]
  if (format === 'csv') return readCsv(text())
  if (format === 'parquet') return readParquet(bytes)
  if (format === 'arrow') return readArrow(bytes)
  return text()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as unknown)
}

/** The expected result of `readTable` for these records. */
export function toExpected(format: Format, records: readonly unknown[], schema: z.ZodType): readonly unknown[] {
  if (format === 'json' || format === 'ndjson') return records
  const rows = records.map((record) => flatten(record, schema))
  if (format !== 'csv') return rows
  return rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, toCsvText(value)])))
}
