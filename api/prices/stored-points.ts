import { createBatcher } from '../../shared/batcher.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import { DAY_MS, INTERVAL_SECONDS, INTERVALS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { NO_ROWS, type Rows, readAnswer, toRows } from '../answers/rows.ts'
import { withSignal } from '../cache/single-flight.ts'
import type { PointsRange, StoredPoints } from '../route/stored-points.ts'
import { toChunkMs } from '../series/chunks.ts'

const FIVE_MINUTES_MS = INTERVAL_SECONDS['5m'] * 1000
const STATEMENT = 'historic-financial'
/** Stored columns. Planning the expressions of the other columns takes ClickHouse longer than reading a day. */
const STORED = 'price_code, circulating_supply, market_cap_code, volume_24h_code, total_supply'
/**
 * The planner used without the analyzer considers only the columns that a statement names. The analyzer resolves the
 * expressions of all columns, which takes a quarter of the time for one day.
 */
const SETTINGS = { max_threads: 1, enable_analyzer: 0 }

/** The table of an interval's points: the raw series for the finest interval, a part of the roll-ups for the others. */
export function toTier(interval: Interval): { table: string; time: string; isOfTier: string } {
  if (interval === '5m') return { table: 'token_prices', time: 'observed_at', isOfTier: 'true' }
  const isOfTier = `interval_seconds = ${INTERVAL_SECONDS[interval]}`
  return { table: 'token_price_rollups', time: 'bucket_at', isOfTier }
}

/**
 * SQL condition for the range in the parameters `token`, `from` and `to`; with several ranges each name ends with its
 * number.
 */
export const RANGE = (column: string, number: number | '' = '') => `token = {token${number}: UInt64}
  AND ${column} >= fromUnixTimestamp64Milli({from${number}: Int64}, 'UTC') AND ${column} < fromUnixTimestamp64Milli({to${number}: Int64}, 'UTC')`

/**
 * The points of ranges as JSON rows, oldest first, byte for byte as ClickHouse writes them for `pointsSql`, in half of
 * its time. They are written on the process's only thread, so the ranges must be short. Several ranges of one token
 * each get the points of all of them.
 * @throws DataError `storage`
 */
export async function readStoredPoints(
  db: Database,
  interval: Interval,
  ranges: readonly PointsRange[],
): Promise<Rows[]> {
  const { table, time, isOfTier } = toTier(interval)
  const bucket = interval === '5m' ? '' : `${time}, `
  const isInRanges = ranges.map((_, number) => `(${RANGE(time, number)})`).join(' OR ')
  const bytes = await readAnswer(db, {
    name: STATEMENT,
    sql: `SELECT token, observed_at, ${bucket}${STORED} FROM ${table} FINAL WHERE ${isOfTier} AND (${isInRanges}) ORDER BY token, ${time}`,
    params: Object.assign({}, ...ranges.map(toParams)),
    format: 'RowBinary',
    settings: SETTINGS,
  })
  try {
    const points = decodePoints(bytes, interval)
    return ranges.map(({ token }) => points.get(token) ?? NO_ROWS)
  } catch (error) {
    throw new DataError('storage', `ClickHouse, ${STATEMENT}: an answer of an unexpected shape: ${toReason(error)}`)
  }
}

const toParams = ({ token, from, to }: PointsRange, number: number) => ({
  [`token${number}`]: token,
  [`from${number}`]: from,
  [`to${number}`]: to,
})

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

/** Scale by the `place` of a code (002_prices.sql): powers of ten, from 1 on. */
const POWERS = [Number.NaN, 1, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12]
/** Codes between this and 0 are digits with their place; any other code is the bits of a Float64. */
const BELOW_DIGITS = -(2 ** 52)

/**
 * Reads the values of a row in order. Codes are decoded like `dao_data_decode` and `dao_data_decode_cap`
 * (002_prices.sql); the golden vectors of test/support/price-codes.ts test both.
 * @throws RangeError if the bytes end too early.
 */
function createReader(bytes: Buffer) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  let at = 0
  const float = new Float64Array(1)
  const bits = new BigInt64Array(float.buffer)
  /** Exact for times and keys, and for codes that are digits. */
  const peekInt64 = () => view.getInt32(at + 4, true) * 2 ** 32 + view.getUint32(at, true)
  const int64 = () => {
    const value = peekInt64()
    at += 8
    return value
  }
  const float64 = () => {
    const value = view.getFloat64(at, true)
    at += 8
    return value
  }
  return {
    isAtEnd: () => at === bytes.length,
    isNull: () => {
      at += 1
      return view.getUint8(at - 1) !== 0
    },
    float64,
    key: int64,
    milliseconds: int64,
    seconds: () => {
      at += 4
      return view.getUint32(at - 4, true)
    },
    decoded: () => {
      const code = peekInt64()
      if (code >= 0 || code <= BELOW_DIGITS) return float64()
      at += 8
      const digits = -1 - code
      return Math.floor(digits / 8) / (POWERS[digits % 8] as number)
    },
    decodedCap: (price: number, supply: number | null) => {
      const product = price * (supply ?? 0)
      const difference = int64()
      if (difference === 0) return product
      float[0] = product
      bits[0] = (bits[0] as bigint) + view.getBigInt64(at - 8, true)
      return float[0]
    },
  }
}

/** Collects the points of a token; the first row of a bucket wins. */
function createWriter(toTime: (ms: number) => string) {
  let text = ''
  const [starts, buckets, times] = [[0], [] as number[], [] as number[]]
  return {
    isTold: (bucket: number) => bucket === buckets.at(-1),
    add: (bucket: number, observed: number, values: string) => {
      text += `{"timestamp":"${toTime(bucket)}","quote":{"USD":{${values},"timestamp":"${toTime(observed)}"}}},`
      buckets.push(bucket)
      times.push(observed)
      starts.push(text.length)
    },
    toRows: (): Rows => {
      const [at, asOf] = [Float64Array.from(buckets), Float64Array.from(times)]
      return toRows(Buffer.from(text.slice(0, -1), 'latin1'), Uint32Array.from(starts), at, asOf)
    },
  }
}

/** Decodes stored rows to the points of each token. */
function decodePoints(bytes: Buffer, interval: Interval): ReadonlyMap<number, Rows> {
  const read = createReader(bytes)
  const toTime = createTimeWriter()
  const [toTotal, toCirculating] = [createNumberWriter(), createNumberWriter()]
  const writers = new Map<number, ReturnType<typeof createWriter>>()
  let [of, writer] = [Number.NaN, createWriter(toTime)]
  while (!read.isAtEnd()) {
    const token = read.key()
    if (token !== of) {
      ;[of, writer] = [token, createWriter(toTime)]
      writers.set(token, writer)
    }
    const observed = read.milliseconds()
    const bucket = interval === '5m' ? observed - (observed % FIVE_MINUTES_MS) : read.seconds() * 1000
    const price = read.decoded()
    const circulating = read.isNull() ? null : read.float64()
    const cap = read.isNull() ? null : read.decodedCap(price, circulating)
    const volume = read.isNull() ? null : read.decoded()
    const total = read.isNull() ? null : read.float64()
    if (writer.isTold(bucket)) continue
    const numbers = `"price":${toJsonNumber(price)},"volume_24h":${toJsonNumber(volume)},"market_cap":${toJsonNumber(cap)}`
    const supplies = `"total_supply":${toTotal(total)},"circulating_supply":${toCirculating(circulating)}`
    writer.add(bucket, observed, `${numbers},${supplies}`)
  }
  return new Map([...writers].map(([token, points]) => [token, points.toRows()]))
}

/** Maximum number of chunks written in this process per read: they take some milliseconds of the only thread. */
const SHORT_READ_CHUNKS = 8

const countChunks = ({ from, to }: TimeRange, interval: Interval) => (to - from) / toChunkMs(interval)

/** Whether a range is read by `StoredPoints`. */
export const isShort = (range: TimeRange, interval: Interval): boolean =>
  countChunks(range, interval) <= SHORT_READ_CHUNKS

/** One concurrent statement per this number of concurrent answers; further reads are batched. */
const ANSWERS_PER_STATEMENT = 4

/**
 * Batches reads of short ranges into one statement while others are running. On a cluster each range is read alone: one
 * token needs one shard, and its answer does not depend on another shard's availability.
 */
export function createStoredPoints(db: Database, maxAnswers: number): StoredPoints {
  const createRead = (interval: Interval): StoredPoints[Interval] => {
    const read = (ranges: readonly PointsRange[], signal: AbortSignal) =>
      readStoredPoints(withSignal(db, signal), interval, ranges)
    const gather = createBatcher({
      read,
      concurrency: Math.max(2, Math.floor(maxAnswers / ANSWERS_PER_STATEMENT)),
      most: SHORT_READ_CHUNKS,
      weigh: (range: PointsRange) => Math.max(1, countChunks(range, interval)),
    })
    const isAlone = (range: PointsRange) =>
      db.cluster !== undefined || countChunks(range, interval) > SHORT_READ_CHUNKS / 2
    return (range, abandoned) =>
      inTime(abandoned, db.answerTimeoutMs, (signal) =>
        isAlone(range) ? read([range], signal).then(([rows]) => rows as Rows) : gather(range, signal),
      )
  }
  return Object.fromEntries(INTERVALS.map((interval) => [interval, createRead(interval)])) as StoredPoints
}

/**
 * Reads within the time limit of an answer, including the wait for a statement.
 * @throws DataError `storage`
 */
async function inTime<T>(
  abandoned: AbortSignal,
  timeoutMs: number,
  read: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = AbortSignal.timeout(timeoutMs)
  try {
    return await read(AbortSignal.any([abandoned, late]))
  } catch (error) {
    if (error !== late.reason) throw error
    throw new DataError('storage', `ClickHouse: no answer within ${timeoutMs / 1000} s`, { cause: error })
  }
}
