import { END_OF_TIME, remembering } from '../intervals.ts'

/** The types of a table's columns by name. */
export type ColumnTypes = ReadonlyMap<string, string>

type Row = Readonly<Record<string, unknown>>

/** Encodes the values of one column; undefined if one of them does not match the type exactly. */
type Encode = (values: readonly unknown[]) => readonly Uint8Array[] | undefined

interface Codec {
  /** Type of the encoded bytes. The engine converts them to the column's type. */
  readonly type: string
  readonly encode: Encode
  /** Filler for null values. */
  readonly blank: unknown
}

/** Rows as a block of ClickHouse's Native format, with their columns. */
export interface NativeBlock {
  readonly columns: readonly string[]
  readonly data: Buffer
}

/**
 * Encodes rows as one block of ClickHouse's Native format (`docs/en/interfaces/formats/Native.md`), at a third of the
 * CPU time of JSON in the engine and in this process. `every` are members with the same value in all rows.
 * @returns undefined for unsupported rows: different members, values of other types or out of range, unsupported column
 * types. The caller sends such rows as JSON, and the engine validates them.
 */
export function toNative(types: ColumnTypes, rows: readonly object[], every: Row = {}): NativeBlock | undefined {
  const own = Object.keys(rows[0] ?? {})
  if (rows.some((row) => Object.keys(row).length !== own.length)) return undefined
  const parts: Uint8Array[] = []
  const columns = [...own, ...Object.keys(every)]
  for (const [at, name] of columns.entries()) {
    const codec = toCodec(types.get(name) ?? '')
    const values = at < own.length ? rows.map((row) => (row as Row)[name]) : rows.map(() => every[name])
    const data = codec?.encode(values)
    if (codec === undefined || data === undefined) return undefined
    parts.push(toText(name), toText(codec.type), ...data)
  }
  return { columns, data: Buffer.concat([toVarint(columns.length), toVarint(rows.length), ...parts]) }
}

function toCodec(type: string): Codec | undefined {
  const inner = /^Nullable\((.*)\)$/.exec(type)?.[1]
  if (inner === undefined) return toPlainCodec(type)
  const codec = toPlainCodec(inner)
  return codec && { type: `Nullable(${codec.type})`, blank: null, encode: (values) => encodeNullable(values, codec) }
}

function toPlainCodec(type: string): Codec | undefined {
  // Text-like types, such as enumerations, are sent as strings.
  if (type === 'String' || type === 'LowCardinality(String)' || type.startsWith('Enum8('))
    return { type: 'String', encode: encodeTexts, blank: '' }
  if (type === 'Float64') return { type, encode: encodeFloats, blank: 0 }
  if (type === 'Bool') return { type, encode: encodeBooleans, blank: false }
  if (type === "DateTime64(3, 'UTC')")
    return { type, encode: (values) => encodeIntegers(values.map(toPlainMs), TIME), blank: EPOCH }
  const integer = INTEGERS.get(type)
  return integer && { type, encode: (values) => encodeIntegers(values, integer), blank: 0 }
}

function encodeNullable(values: readonly unknown[], { encode, blank }: Codec): readonly Uint8Array[] | undefined {
  const nulls = new Uint8Array(values.length)
  const filled = values.map((value, at) => {
    if (value !== null) return value
    nulls[at] = 1
    return blank
  })
  const data = encode(filled)
  return data && [nulls, ...data]
}

function encodeFloats(values: readonly unknown[]): readonly Uint8Array[] | undefined {
  const floats = new Float64Array(values.length)
  let at = 0
  for (const value of values) {
    if (typeof value !== 'number' || !Number.isFinite(value)) return undefined
    // Turns -0 into 0, as JSON does.
    floats[at] = value + 0
    at += 1
  }
  return [toBytes(floats)]
}

function encodeBooleans(values: readonly unknown[]): readonly Uint8Array[] | undefined {
  if (values.some((value) => typeof value !== 'boolean')) return undefined
  return [new Uint8Array(values.map(Number))]
}

function encodeTexts(values: readonly unknown[]): readonly Uint8Array[] | undefined {
  const texts: Uint8Array[] = []
  for (const value of values) {
    if (typeof value !== 'string') return undefined
    texts.push(toText(value))
  }
  return texts
}

/** Little-endian integers of `bytes` bytes. */
interface IntegerType {
  readonly bytes: number
  readonly least: number
  readonly most: number
}

const unsigned = (bytes: number): IntegerType => ({
  bytes,
  least: 0,
  most: Math.min(2 ** (8 * bytes) - 1, Number.MAX_SAFE_INTEGER),
})

const INTEGERS: ReadonlyMap<string, IntegerType> = new Map([
  ['UInt8', unsigned(1)],
  ['UInt16', unsigned(2)],
  ['UInt32', unsigned(4)],
  ['UInt64', unsigned(8)],
])

const EPOCH = '1970-01-01T00:00:00Z'
/** As Unix milliseconds. */
const TIME: IntegerType = { bytes: 8, least: 0, most: END_OF_TIME }

const PLAIN_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/
const parseTime = remembering((text) => (PLAIN_TIME.test(text) ? Date.parse(text) : Number.NaN))
const toPlainMs = (value: unknown) => (typeof value === 'string' ? parseTime(value) : Number.NaN)

function encodeIntegers(
  values: readonly unknown[],
  { bytes, least, most }: IntegerType,
): readonly Uint8Array[] | undefined {
  const data = Buffer.allocUnsafe(values.length * bytes)
  let at = 0
  for (const value of values) {
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least || value > most) return undefined
    if (bytes === 8) {
      data.writeUInt32LE(value % TWO_32, at)
      data.writeUInt32LE(Math.floor(value / TWO_32), at + 4)
    } else data.writeUIntLE(value, at, bytes)
    at += bytes
  }
  return [data]
}

const TWO_32 = 2 ** 32

const toBytes = ({ buffer, byteOffset, byteLength }: Float64Array) => new Uint8Array(buffer, byteOffset, byteLength)

/** Length in bytes as a varint, then UTF-8. Cached, because a column has few distinct texts. */
const toText: (text: string) => Uint8Array = remembering((text) => {
  const bytes = Buffer.from(text)
  return Buffer.concat([toVarint(bytes.length), bytes])
}, 2_000)

/** LEB128: seven bits per byte, lowest first; the top bit marks a continuation. */
function toVarint(value: number): Uint8Array {
  const bytes: number[] = []
  let remaining = value
  for (; remaining > 127; remaining = Math.floor(remaining / 128)) bytes.push((remaining % 128) | 128)
  return Uint8Array.from([...bytes, remaining])
}
