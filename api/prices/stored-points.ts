import { DataError, toReason } from '../../shared/errors.ts'
import { DAY_MS, INTERVAL_SECONDS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { ANSWER_TIMEOUT_MS } from '../answers/leaving.ts'
import { readAnswer } from '../answers/written-json.ts'
import { type Rows, toRows } from '../series/rows.ts'
import { RANGE, toTier } from './points.ts'

const FIVE_MINUTES_MS = INTERVAL_SECONDS['5m'] * 1000
const STATEMENT = 'historic-financial'
/** Columns as they are stored. The engine takes longer to plan the expressions of the others than to read a day. */
const STORED = 'price_code, circulating_supply, market_cap_code, volume_24h_code, total_supply'

/**
 * The points of a token (its key) as JSON rows, oldest first: byte for byte what ClickHouse writes for `pointsSql`, for half
 * of its time. They are written on the one thread that serves everybody, so the range has to be a short one, of
 * whole buckets.
 * @throws DataError `storage`
 */
export async function readStoredPoints(
  db: Database,
  { token, interval, from, to }: TimeRange & { readonly token: number; readonly interval: Interval },
): Promise<Rows> {
  const { table, time, isOfTier } = toTier(interval)
  const bucket = interval === '5m' ? '' : `${time}, `
  const bytes = await readAnswer(db, {
    name: STATEMENT,
    sql: `SELECT observed_at, ${bucket}${STORED} FROM ${table} FINAL WHERE ${isOfTier} AND ${RANGE(time)} ORDER BY token, ${time}`,
    params: { token, from, to },
    format: 'RowBinary',
    settings: { max_threads: 1 },
    signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
  })
  try {
    return decodePoints(bytes, interval)
  } catch (error) {
    throw new DataError('storage', `ClickHouse, ${STATEMENT}: an answer of an unexpected shape: ${toReason(error)}`)
  }
}

/** A number as ClickHouse writes it in JSON: the shortest digits, as JavaScript does, but no plus in an exponent. */
function toJsonNumber(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return 'null'
  const text = Object.is(value, -0) ? '-0' : String(value)
  return Math.abs(value) < 1e21 ? text : text.replace('+', '')
}

/** Times as JSON tells them; most of them are of the day of the one before. */
function createTimeWriter(): (ms: number) => string {
  let [day, date] = [Number.NaN, '']
  const two = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'))
  return (ms) => {
    const today = Math.floor(ms / DAY_MS)
    if (today !== day) [day, date] = [today, new Date(ms).toISOString().slice(0, 'yyyy-mm-ddT'.length)]
    const rest = ms - today * DAY_MS
    const [seconds, fraction] = [Math.floor(rest / 1000), rest % 1000]
    const [hour, minute] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
    return `${date}${two[hour]}:${two[minute]}:${two[seconds % 60]}.${String(fraction).padStart(3, '0')}Z`
  }
}

/** What `place` of a code counts in (002_prices.sql): powers of ten, from 1 on. */
const POWERS = [Number.NaN, 1, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12]
/** Codes between this and 0 are digits with their place; any other is a Float64 as its bits. */
const BELOW_DIGITS = -(2 ** 52)

/**
 * The values of a row one after the other. What is stored as a code is told as `dao_data_decode` and
 * `dao_data_decode_cap` tell it (002_prices.sql).
 * @throws RangeError where the bytes end too early.
 */
function createReader(bytes: Buffer) {
  let at = 0
  const float = new Float64Array(1)
  const bits = new BigInt64Array(float.buffer)
  /** Exact for times, and for codes that are digits. */
  const peekInt64 = () => bytes.readInt32LE(at + 4) * 2 ** 32 + bytes.readUInt32LE(at)
  const int64 = () => {
    at += 8
    return bytes.readInt32LE(at - 4) * 2 ** 32 + bytes.readUInt32LE(at - 8)
  }
  const float64 = () => {
    at += 8
    return bytes.readDoubleLE(at - 8)
  }
  return {
    isAtEnd: () => at === bytes.length,
    isNull: () => bytes.readUInt8(at++) !== 0,
    float64,
    milliseconds: int64,
    seconds: () => {
      at += 4
      return bytes.readUInt32LE(at - 4)
    },
    decoded: () => {
      const code = peekInt64()
      if (code >= 0 || code <= BELOW_DIGITS) return float64()
      at += 8
      const digits = -1 - code
      return Math.floor(digits / 8) / (POWERS[digits % 8] as number)
    },
    decodedCap: (price: number, supply: number | null) => {
      float[0] = price * (supply ?? 0)
      bits[0] = (bits[0] as bigint) + bytes.readBigInt64LE(at)
      at += 8
      return float[0]
    },
  }
}

/** The rows as they are stored, as points: of several in a bucket the first. */
function decodePoints(bytes: Buffer, interval: Interval): Rows {
  const read = createReader(bytes)
  const toTime = createTimeWriter()
  const texts: string[] = []
  const [starts, buckets, times] = [[0], [] as number[], [] as number[]]
  while (!read.isAtEnd()) {
    const observed = read.milliseconds()
    const bucket = interval === '5m' ? observed - (observed % FIVE_MINUTES_MS) : read.seconds() * 1000
    const price = read.decoded()
    const circulating = read.isNull() ? null : read.float64()
    const cap = read.isNull() ? null : read.decodedCap(price, circulating)
    const volume = read.isNull() ? null : read.decoded()
    const total = read.isNull() ? null : read.float64()
    if (bucket === buckets.at(-1)) continue
    const numbers = `"price":${toJsonNumber(price)},"volume_24h":${toJsonNumber(volume)},"market_cap":${toJsonNumber(cap)}`
    const supplies = `"total_supply":${toJsonNumber(total)},"circulating_supply":${toJsonNumber(circulating)}`
    const usd = `{${numbers},${supplies},"timestamp":"${toTime(observed)}"}`
    const text = `{"timestamp":"${toTime(bucket)}","quote":{"USD":${usd}}}`
    texts.push(text)
    buckets.push(bucket)
    times.push(observed)
    starts.push((starts.at(-1) as number) + text.length + 1)
  }
  const [at, asOf] = [Float64Array.from(buckets), Float64Array.from(times)]
  return toRows(Buffer.from(texts.join(','), 'latin1'), Uint32Array.from(starts), at, asOf)
}
