import { END_OF_TIME, remembering } from '../intervals.ts'

/** The types of a table's columns by their names. */
export type ColumnTypes = ReadonlyMap<string, string>

type Row = Readonly<Record<string, unknown>>

/** Writes the values of one column; undefined where one of them is not plainly of its type. */
type Encode = (values: readonly unknown[]) => readonly Uint8Array[] | undefined

interface Codec {
  /** As what the bytes are announced; the engine converts them to the column's own type. */
  readonly type: string
  readonly encode: Encode
  /** What stands where a value is null. */
  readonly blank: unknown
}

/** Rows as a block of ClickHouse's Native format, and the columns that they have. */
export interface NativeBlock {
  readonly columns: readonly string[]
  readonly data: Buffer
}

/**
 * Rows as one block of ClickHouse's Native format (`docs/en/interfaces/formats/Native.md`), which costs the engine and
 * this process a third of what JSON does. `every` are members that all rows have alike.
 * @returns undefined for what is not plain: rows of different members, values of other types or outside of what theirs
 *   holds, columns of types that are not written here. Such rows go as JSON, and the engine judges them.
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
  // What stands for a text in the engine, as the names of an enumeration, is sent as text.
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
    // As JSON has it, where there is no -0.
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

/** Whole numbers of so many bytes, the lowest first. */
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
const toKnownMs = remembering((text) => (PLAIN_TIME.test(text) ? Date.parse(text) : Number.NaN))
const toPlainMs = (value: unknown) => (typeof value === 'string' ? toKnownMs(value) : Number.NaN)

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

/** Its length in bytes, then itself in UTF-8. Most texts of a column are the same few. */
const toText: (text: string) => Uint8Array = remembering((text) => {
  const bytes = Buffer.from(text)
  return Buffer.concat([toVarint(bytes.length), bytes])
}, 2_000)

/** Seven bits a byte, the lowest first; the top bit says that more follow. */
function toVarint(value: number): Uint8Array {
  const bytes: number[] = []
  let left = value
  for (; left > 127; left = Math.floor(left / 128)) bytes.push((left % 128) | 128)
  return Uint8Array.from([...bytes, left])
}
