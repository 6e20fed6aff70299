import { z } from 'zod'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import type { Interval, TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { COMMA, type Rows, toSize } from '../answers/rows.ts'
import type { StoredPoints } from '../route/stored-points.ts'
import type { CountedSource, Series } from '../series/pieces.ts'
import { writeRows } from '../series/written-rows.ts'
import { isShort } from './gathered-points.ts'
import { observationsSql, pointsSql } from './points.ts'

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
  count: (db, range, pieceMs) => countPoints(db, interval, { token, ...range, length: pieceMs / 1000 }),
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

async function countPoints(
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
