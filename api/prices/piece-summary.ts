import { z } from 'zod'
import { type Interval, type TimeRange, WEEK_MS } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { toPieceMs } from '../series/pieces.ts'
import { observationsSql, pointsSql, VALUES } from './points.ts'

export interface PieceSummary {
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
): Promise<{ pieces: Map<number, PieceSummary>; parts: string }> {
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
    params: { ...params, limit: params.limit ?? null, length: toPieceMs(interval) / 1000, week: WEEK_MS },
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
