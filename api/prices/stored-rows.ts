import { DAY_MS, INTERVAL_SECONDS, type TimeRange } from '../../shared/intervals.ts'
import { deflateQuickly, inflate, type Rows, toRows } from '../formats/formats.ts'
import type { Column, StoredRows } from '../route/stored-points.ts'
import type { PackedRows } from '../series/chunks.ts'

/** The types of the columns of rows by name, in their order. */
export type ColumnTypes = Readonly<Record<string, string>>

const WIDTHS = new Map([
  ['UInt64', 8],
  ['Int64', 8],
  ['Float64', 8],
  ["DateTime64(3, 'UTC')", 8],
  ['DateTime', 4],
])

const toWidth = (type: string) => WIDTHS.get(/^Nullable\((.*)\)$/.exec(type)?.[1] ?? type) as number
const isNullable = (type: string) => type.startsWith('Nullable(')

/**
 * Reads rows in ClickHouse's Native format (`docs/en/interfaces/formats/Native.md`): blocks of columns, each with a name,
 * a type and the values.
 * @throws RangeError for other columns, and for bytes that end too early.
 */
export function readNative(bytes: Buffer, types: ColumnTypes): StoredRows {
  let at = 0
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw new RangeError(`ends after ${bytes.length} bytes`)
    at += length
    return bytes.subarray(at - length, at)
  }
  const takeNumber = (): number => {
    let [number, scale, byte] = [0, 1, 0]
    do {
      byte = take(1)[0] as number
      number += (byte & 127) * scale
      scale *= 128
    } while (byte > 127)
    return number
  }
  const blocks: StoredRows[] = []
  while (at < bytes.length) {
    const [names, count] = [takeNumber(), takeNumber()]
    const columns = new Map<string, Column>()
    for (let column = 0; column < names; column++) {
      const name = String(take(takeNumber()))
      const type = String(take(takeNumber()))
      if (types[name] !== type) throw new RangeError(`column ${name} of type ${type}`)
      const width = toWidth(type)
      columns.set(name, { nulls: isNullable(type) ? take(count) : null, data: take(count * width), width })
    }
    if (columns.size < Object.keys(types).length)
      throw new RangeError(`only the columns ${[...columns.keys()].join(', ')}`)
    blocks.push({ count, columns })
  }
  return joinRows(blocks, types)
}

function joinRows(blocks: readonly StoredRows[], types: ColumnTypes): StoredRows {
  const [first, second] = blocks
  if (first !== undefined && second === undefined) return first
  const join = (name: string, type: string): Column => {
    const parts = blocks.map(({ columns }) => columns.get(name) as Column)
    const nulls = isNullable(type) ? Buffer.concat(parts.map((part) => part.nulls as Uint8Array)) : null
    return { nulls, data: Buffer.concat(parts.map(({ data }) => data)), width: toWidth(type) }
  }
  return {
    count: blocks.reduce((sum, { count }) => sum + count, 0),
    columns: new Map(Object.entries(types).map(([name, type]) => [name, join(name, type)])),
  }
}

/** The rows from `first` to `end`, exclusive. */
function sliceRows({ columns }: StoredRows, first: number, end: number): StoredRows {
  const slice = ({ nulls, data, width }: Column): Column => ({
    nulls: nulls === null ? null : nulls.subarray(first, end),
    data: data.subarray(first * width, end * width),
    width,
  })
  return { count: end - first, columns: new Map([...columns].map(([name, column]) => [name, slice(column)])) }
}

type ColumnReader = ReturnType<typeof createColumnReader>

/** Reads values of a column. */
function createColumnReader(rows: StoredRows, name: string) {
  const { nulls, data, width } = rows.columns.get(name) as Column
  const view = new DataView(data.buffer, data.byteOffset, data.length)
  return {
    isNull: (row: number) => nulls !== null && nulls[row] !== 0,
    seconds: (row: number) => view.getUint32(row * width, true),
    float64: (row: number) => view.getFloat64(row * width, true),
    bigInt64: (row: number) => view.getBigInt64(row * width, true),
    /** Exact for times and keys, and for codes that are digits. */
    int64: (row: number) => view.getInt32(row * width + 4, true) * 2 ** 32 + view.getUint32(row * width, true),
  }
}

/** The first row that meets a condition. If a row meets the condition, all later rows must meet it. */
function findRow(count: number, holds: (row: number) => boolean): number {
  let [low, high] = [0, count]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}

/** The rows of one token, without its key. */
export function selectToken(rows: StoredRows, token: number): StoredRows {
  const key = createColumnReader(rows, 'token')
  const first = findRow(rows.count, (row) => key.int64(row) >= token)
  const { count, columns } = sliceRows(
    rows,
    first,
    findRow(rows.count, (row) => key.int64(row) > token),
  )
  return { count, columns: new Map([...columns].filter(([name]) => name !== 'token')) }
}

const FIVE_MINUTES_MS = INTERVAL_SECONDS['5m'] * 1000

/** Reads the start of a row's bucket in Unix milliseconds: its column, or of 5-minute points the time observed. */
function toBuckets(rows: StoredRows): (row: number) => number {
  if (rows.columns.has('bucket_at')) {
    const { seconds } = createColumnReader(rows, 'bucket_at')
    return (row) => seconds(row) * 1000
  }
  const { int64 } = createColumnReader(rows, 'observed_at')
  return (row) => Math.floor(int64(row) / FIVE_MINUTES_MS) * FIVE_MINUTES_MS
}

/** The rows of one token with buckets that start in a range. */
export function selectRange(rows: StoredRows, { from, to }: TimeRange): StoredRows {
  const toBucket = toBuckets(rows)
  const first = findRow(rows.count, (row) => toBucket(row) >= from)
  return sliceRows(
    rows,
    first,
    findRow(rows.count, (row) => toBucket(row) >= to),
  )
}

/**
 * Packs the values of rows, to a third of the size of their deflated JSON. The bytes of a column with the same place in
 * their values are adjacent, each as the difference from the one before: of numbers that change little, most are equal.
 */
export function packRows({ count, columns }: StoredRows): PackedRows {
  const planes: Uint8Array[] = []
  for (const { nulls, data, width } of columns.values()) {
    if (nulls !== null) planes.push(nulls)
    planes.push(toPlanes(data, width))
  }
  return { bytes: count === 0 ? Buffer.alloc(0) : deflateQuickly(Buffer.concat(planes)), count }
}

/** Returns the packed rows, with columns of these types. */
export function unpackRows({ bytes: packed, count }: PackedRows, types: ColumnTypes): StoredRows {
  const all = Object.entries(types)
  const bytes = all.reduce((sum, [, type]) => sum + (toWidth(type) + Number(isNullable(type))) * count, 0)
  const planes = count === 0 ? Buffer.alloc(0) : inflate([packed], bytes)
  let at = 0
  const take = (length: number) => {
    at += length
    return planes.subarray(at - length, at)
  }
  const unpack = (type: string): Column => {
    const width = toWidth(type)
    const nulls = isNullable(type) ? take(count) : null
    return { nulls, data: fromPlanes(take(count * width), width), width }
  }
  return { count, columns: new Map(all.map(([name, type]) => [name, unpack(type)])) }
}

function toPlanes(data: Uint8Array, width: number): Uint8Array {
  const planes = new Uint8Array(data.length)
  let at = 0
  for (let place = 0; place < width; place++) {
    let before = 0
    for (let from = place; from < data.length; from += width) {
      const byte = data[from] as number
      planes[at++] = byte - before
      before = byte
    }
  }
  return planes
}

function fromPlanes(planes: Uint8Array, width: number): Uint8Array {
  const data = new Uint8Array(planes.length)
  let at = 0
  for (let place = 0; place < width; place++) {
    let byte = 0
    for (let to = place; to < data.length; to += width) {
      byte = (byte + (planes[at++] as number)) & 255
      data[to] = byte
    }
  }
  return data
}

/** Scale by the `place` of a code (002_prices.sql): powers of ten, from 1 on. */
const POWERS = [Number.NaN, 1, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12]
/** Codes between this and 0 are digits with their place; any other code is the bits of a Float64. */
const BELOW_DIGITS = -(2 ** 52)

/**
 * Formats a number like ClickHouse's JSON: the shortest digits, like JavaScript, but without a plus in the exponent.
 */
function toJsonNumber(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return 'null'
  const text = Object.is(value, -0) ? '-0' : String(value)
  return Math.abs(value) < 1e21 ? text : text.replace('+', '')
}

/**
 * Caches the last formatted value, because supplies rarely change between rows and finding the digits is the slowest
 * step.
 */
function createNumberWriter(): (value: number | null) => string {
  let [last, text]: [number | null, string] = [null, 'null']
  return (value) => {
    if (!Object.is(value, last)) [last, text] = [value, toJsonNumber(value)]
    return text
  }
}

const toTwoDigits = (number: number) => String(number).padStart(2, '0')
const OF_60 = Array.from({ length: 60 }, (_, number) => toTwoDigits(number))
const MINUTES_OF_DAY = Array.from({ length: 24 * 60 }, (_, at) => `${OF_60[Math.floor(at / 60)]}:${OF_60[at % 60]}:`)

/** Formats times for JSON; caches the date, because most times are on the same day as the previous one. */
function createTimeWriter(): (ms: number) => string {
  let [day, date] = [Number.NaN, '']
  return (ms) => {
    const today = Math.floor(ms / DAY_MS)
    if (today !== day) [day, date] = [today, new Date(ms).toISOString().slice(0, 'yyyy-mm-ddT'.length)]
    const rest = ms - today * DAY_MS
    const minute = Math.floor(rest / 60_000)
    const second = Math.floor((rest - minute * 60_000) / 1000)
    const fraction = rest % 1000
    const digits = fraction === 0 ? '000' : String(fraction).padStart(3, '0')
    return `${date}${MINUTES_OF_DAY[minute]}${OF_60[second]}.${digits}Z`
  }
}

/** Reads the numbers that codes stand for, like `dao_data_decode` and `dao_data_decode_cap` (002_prices.sql). */
function createDecoder() {
  const float = new Float64Array(1)
  const bits = new BigInt64Array(float.buffer)
  return {
    decode: ({ int64, float64 }: ColumnReader, row: number): number => {
      const code = int64(row)
      if (code >= 0 || code <= BELOW_DIGITS) return float64(row)
      const digits = -1 - code
      return Math.floor(digits / 8) / (POWERS[digits % 8] as number)
    },
    decodeCap: ({ int64, bigInt64 }: ColumnReader, row: number, price: number, supply: number | null): number => {
      const product = price * (supply ?? 0)
      if (int64(row) === 0) return product
      float[0] = product
      bits[0] = (bits[0] as bigint) + bigInt64(row)
      return float[0]
    },
  }
}

/**
 * Writes the rows of one token as JSON, byte for byte as ClickHouse writes them for `pointsSql`, in half of its time. The
 * first row of a bucket is its point. The golden vectors of test/support/price-codes.ts test the codes.
 */
export function writeJson(rows: StoredRows): Rows {
  const [toTime, toTotal, toCirculating] = [createTimeWriter(), createNumberWriter(), createNumberWriter()]
  const { decode, decodeCap } = createDecoder()
  const toBucket = toBuckets(rows)
  const read = (name: string) => createColumnReader(rows, name)
  const [observedAt, prices, caps] = [read('observed_at'), read('price_code'), read('market_cap_code')]
  const [volumes, circulations, totals] = [read('volume_24h_code'), read('circulating_supply'), read('total_supply')]
  let text = ''
  const [starts, buckets, times] = [[0], [] as number[], [] as number[]]
  for (let row = 0; row < rows.count; row++) {
    const bucket = toBucket(row)
    if (bucket === buckets.at(-1)) continue
    const observed = observedAt.int64(row)
    const price = decode(prices, row)
    const circulating = circulations.isNull(row) ? null : circulations.float64(row)
    const cap = caps.isNull(row) ? null : decodeCap(caps, row, price, circulating)
    const volume = volumes.isNull(row) ? null : decode(volumes, row)
    const total = totals.isNull(row) ? null : totals.float64(row)
    const numbers = `"price":${toJsonNumber(price)},"volume_24h":${toJsonNumber(volume)},"market_cap":${toJsonNumber(cap)}`
    const supplies = `"total_supply":${toTotal(total)},"circulating_supply":${toCirculating(circulating)}`
    text += `{"timestamp":"${toTime(bucket)}","quote":{"USD":{${numbers},${supplies},"timestamp":"${toTime(observed)}"}}},`
    buckets.push(bucket)
    times.push(observed)
    starts.push(text.length)
  }
  const [at, asOf] = [Float64Array.from(buckets), Float64Array.from(times)]
  return toRows(Buffer.from(text.slice(0, -1), 'latin1'), Uint32Array.from(starts), at, asOf)
}
