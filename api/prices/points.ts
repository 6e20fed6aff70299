import { z } from 'zod'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { INTERVAL_SECONDS, type Interval, type TimeRange, WEEK_MS } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { COMMA, type Rows, toSize } from '../answers/rows.ts'
import { toObject } from '../records/answer.ts'
import { idValue, numberOrNull, timeValue } from '../records/table.ts'
import type { StoredPoints } from '../route/stored-points.ts'
import { type CountedSource, type Series, toChunkMs, writeRows } from '../series/chunks.ts'
import { countRows } from '../series/series.ts'
import { isShort } from './stored-points.ts'

/** The values of a point. */
const quote = z
  .strictObject({
    USD: z
      .strictObject({
        price: z.number().describe('Price of one token.'),
        volume_24h: numberOrNull.describe('Trading volume of the previous 24 hours on all markets; null if unknown.'),
        market_cap: numberOrNull.describe('Price times circulating supply; null if unknown.'),
        total_supply: numberOrNull.describe('Total supply in tokens; null if unknown.'),
        circulating_supply: numberOrNull.describe('Circulating supply in tokens; null if unknown.'),
        timestamp: timeValue.describe('Time of the observation itself.'),
      })
      .describe('In US dollars.'),
  })
  .meta({ id: 'PriceQuote', description: 'Observed values by currency.' })

/** A point of a series; a table row has the same members after those of its token. */
export const pricePoint = z
  .strictObject({
    timestamp: timeValue.describe('Start of the bucket.'),
    quote: quote.describe('The first observation of the bucket.'),
  })
  .meta({ id: 'PricePoint', description: 'One bucket of a series of prices.' })
export const priceRow = z.strictObject({
  id: idValue.describe('Id of the token.'),
  name: z.string().describe('Name of the token.'),
  symbol: z.string().describe('Symbol of the token.'),
  ...pricePoint.shape,
})

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

export const VALUES = 'price, volume_24h, market_cap, total_supply, circulating_supply'

/** SQL for the members of a point, from a row with `bucket`, `as_of` and `VALUES`. */
export const POINT = `bucket, tuple(tuple(${VALUES}, as_of))`

const AS_POINT = toObject(pricePoint, POINT)
const AS_QUOTE = toObject(quote, `tuple(${VALUES}, as_of)`)

// `from` and `to` lie on the grid of the interval, so that a range of observations is a range of complete buckets.
const FINE = `
SELECT toDateTime64(toStartOfInterval(observed_at, INTERVAL 5 MINUTE, 'UTC'), 3, 'UTC') AS bucket, observed_at AS as_of, ${VALUES}, _part
FROM token_prices FINAL
WHERE ${RANGE('observed_at')}
ORDER BY token, observed_at
LIMIT 1 BY bucket`

const coarse = ({ table, isOfTier }: ReturnType<typeof toTier>) => `
SELECT toDateTime64(bucket_at, 3, 'UTC') AS bucket, observed_at AS as_of, ${VALUES}, _part
FROM ${table} FINAL
WHERE ${isOfTier} AND ${RANGE('bucket_at')}
ORDER BY token, interval_seconds, bucket_at`

/**
 * SQL for the points of a token (parameters `token`, `from` and `to` in Unix milliseconds on the grid, `limit`), oldest
 * first: `all` selects all of them. With `limit`: `columns` adds the table part of each, `rows` has the API's shape,
 * and `records` has that shape with the time.
 */
export function pointsSql(interval: Interval): { all: string; columns: string; rows: string; records: string } {
  const all = interval === '5m' ? FINE : coarse(toTier(interval))
  const columns = `${all}\nLIMIT {limit: UInt32}`
  return {
    all,
    columns,
    rows: `SELECT bucket AS timestamp, ${AS_QUOTE} AS quote FROM (${columns})`,
    records: `SELECT bucket AS row_at, as_of, ${AS_POINT} AS record FROM (${columns})`,
  }
}

/**
 * SQL for the observations of a token's points (parameters `token`, `from` and `to` as above), unordered, each with its
 * table part. Contains all observations of a bucket, while `pointsSql` selects the first.
 */
function observationsSql(interval: Interval): string {
  const { table, time, isOfTier } = toTier(interval)
  const bucket = interval === '5m' ? "toStartOfInterval(observed_at, INTERVAL 5 MINUTE, 'UTC')" : time
  return `SELECT ${bucket} AS bucket, observed_at AS as_of, ${VALUES}, _part FROM ${table} FINAL WHERE ${isOfTier} AND ${RANGE(time)}`
}

/** Number of points in [from, to), grid times in Unix milliseconds; counts at most `limit`. */
export async function countPoints(
  db: Database,
  interval: Interval,
  params: TimeRange & { readonly token: number; readonly limit: number },
): Promise<number> {
  if (params.from >= params.to) return 0
  return countRows(db, { name: 'counted-prices', sql: pointsSql(interval).columns, params: { ...params } })
}

const counted = z.object({ piece: z.int(), points: z.int() })

/** The series of a token, by its key in ClickHouse. */
export const toPriceSeries = (token: number, interval: Interval): Series => ({
  key: `${tokenPrices.name} ${token}`,
  dataset: tokenPrices.name,
  interval,
})

/** The series with its read functions. */
export const toPriceSource = (read: StoredPoints, token: number, interval: Interval): CountedSource => ({
  ...toPriceSeries(token, interval),
  read: (db, range, abandoned) =>
    isShort(range, interval)
      ? read[interval]({ token, ...range }, abandoned)
      : writePoints(db, { token, interval, ...range }),
  count: (db, range, chunkMs) => countPointsByChunk(db, interval, { token, ...range, length: chunkMs / 1000 }),
})

/** The points as ClickHouse writes them, byte for byte the same as `readStoredPoints` for one range. */
export const writePoints = (
  db: Database,
  { token, interval, ...range }: TimeRange & { readonly token: number; readonly interval: Interval },
): Promise<Rows> =>
  writeRows(db, {
    name: 'historic-financial',
    sql: pointsSql(interval).records,
    params: { token, ...range, limit: ALL },
  })

/** More points than any range may have. */
const ALL = 4_294_967_295

async function countPointsByChunk(
  db: Database,
  interval: Interval,
  params: TimeRange & { token: number; length: number },
): Promise<ReadonlyMap<number, number>> {
  const rows = await db.rows({
    name: 'historic-financial-pieces',
    sql: `SELECT intDiv(toUnixTimestamp(bucket), {length: UInt32}) AS piece, uniqExact(bucket) AS points
FROM (${observationsSql(interval)})
GROUP BY piece`,
    params: { ...params },
    settings: { max_threads: 1 },
    schema: counted,
  })
  return new Map(rows.map(({ piece, points }) => [piece, points]))
}

const LINE_BREAK = 0x0a
/** Separator between two rows on separate lines. */
const BETWEEN_LINES = Buffer.from(',\n')

/** Converts points on separate lines, as ClickHouse streams them, to the rows of a chunk. */
export function fromLines(lines: Buffer, points: number): Rows {
  const bytes = Buffer.allocUnsafeSlow(lines.length - (points - 1))
  const starts = new Uint32Array(points + 1)
  let from = 0
  for (let row = 0; row < points; row++) {
    const found = row === points - 1 ? lines.length : lines.indexOf(LINE_BREAK, from)
    const start = starts[row] as number
    const end = start + lines.copy(bytes, start, from, row === points - 1 ? found : found - 1)
    if (row < points - 1) bytes[end] = COMMA
    starts[row + 1] = end + 1
    from = found + 1
  }
  return { bytes, starts, ...createTextTimes(bytes, starts), size: toSize(bytes, starts) + 2 * 8 * points }
}

/** Converts the points of a chunk to separate lines. */
export function toLines({ bytes, starts }: Rows): Buffer {
  const points = starts.length - 1
  const lines = Buffer.allocUnsafe(bytes.length + points - 1)
  let at = 0
  for (let row = 0; row < points; row++) {
    at += bytes.copy(lines, at, starts[row], (starts[row + 1] as number) - 1)
    if (row < points - 1) at += BETWEEN_LINES.copy(lines, at)
  }
  return lines
}

/** Positions of the times in a point's JSON: their width is fixed, and they are at its start and its end. */
const TIME_WIDTH = '2026-01-01T00:00:00.000Z'.length
const TIME_FROM_START = '{"timestamp":"'.length
const TIME_FROM_END = '"}}}'.length + TIME_WIDTH

/** Parses the times of points from their JSON on first use: a long answer needs none. */
function createTextTimes(bytes: Buffer, starts: Uint32Array): Pick<Rows, 'at' | 'asOf'> {
  const read = (from: number) => Date.parse(bytes.toString('latin1', from, from + TIME_WIDTH))
  const createTimes = (toPlace: (row: number) => number) => {
    let times: Float64Array | undefined
    return (row: number) => {
      times ??= Float64Array.from({ length: starts.length - 1 }, (_, one) => read(toPlace(one)))
      return times[row] as number
    }
  }
  return {
    at: createTimes((row) => (starts[row] as number) + TIME_FROM_START),
    asOf: createTimes((row) => (starts[row + 1] as number) - 1 - TIME_FROM_END),
  }
}

export interface ChunkSummary {
  readonly points: number
  /** Newest time used, in Unix milliseconds; null without points. */
  readonly asOf: number | null
  /** Differs whenever the data of the points differs. */
  readonly digest: string
}

const summaryRow = z.object({
  piece: z.int(),
  points: z.int(),
  newest: z.int(),
  digest: z.string(),
  parts: z.array(z.string()),
})

/**
 * Summarizes the points of a range by chunk, and returns the table parts that they were read from: while the parts are
 * the same, so is the data. With a `limit`, points after it are ignored.
 */
export async function summarize(
  db: Database,
  interval: Interval,
  params: TimeRange & { readonly token: number; readonly limit?: number | undefined },
): Promise<{ pieces: Map<number, ChunkSummary>; parts: string }> {
  const rows = await db.rows({
    name: 'historic-financial-summary',
    // A point is the oldest observation of its bucket, so the newest time used is the oldest of the last bucket. "last"
    // encodes both in one number whose maximum is right: the bucket, then how early in it the observation was. The hash
    // is that of a tuple, because a hash of several values is null when one of them is.
    sql: `SELECT intDiv(toUnixTimestamp(bucket), {length: UInt32}) AS piece, uniqExact(toUInt32(toUnixTimestamp(bucket))) AS points,
  max(toUnixTimestamp(bucket) * {week: UInt64} + ({week: UInt64} - 1 - (toUnixTimestamp64Milli(as_of) - toUnixTimestamp(bucket) * 1000))) AS last,
  intDiv(last, {week: UInt64}) * 1000 + ({week: UInt64} - 1 - last % {week: UInt64}) AS newest,
  toString(groupBitXor(cityHash64(tuple(bucket, as_of, ${VALUES})))) AS digest,
  groupUniqArray(_part) AS parts
FROM (${params.limit === undefined ? observationsSql(interval) : pointsSql(interval).columns})
GROUP BY piece`,
    params: { ...params, limit: params.limit ?? null, length: toChunkMs(interval) / 1000, week: WEEK_MS },
    settings: { max_threads: 2 },
    schema: summaryRow,
  })
  const pieces = rows.map(({ piece, points, newest, digest }) => {
    return [piece, { points, asOf: newest, digest }] as const
  })
  return { pieces: new Map(pieces), parts: toPartsKey(rows.flatMap(({ parts }) => parts)) }
}

const toPartsKey = (parts: readonly string[]) => [...new Set(parts)].sort().join()

/** The table parts that contain a range, in the form of `summarize`. */
export async function readParts(
  db: Database,
  interval: Interval,
  params: TimeRange & { readonly token: number },
): Promise<string> {
  const rows = await db.rows({
    name: 'historic-financial-parts',
    sql: `SELECT DISTINCT toString(_part) AS part FROM (${observationsSql(interval)})`,
    params: { ...params },
    schema: z.object({ part: z.string() }),
  })
  return toPartsKey(rows.map(({ part }) => part))
}
