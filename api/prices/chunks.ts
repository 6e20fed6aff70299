import { z } from 'zod'
import { INTERVAL_SECONDS, type Interval, WEEK_MS } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { observationsSql, pointsSql, VALUES } from './points.ts'

/** Points of a whole chunk: about a megabyte of JSON, and two weeks of 5-minute points. */
const CHUNK_BUCKETS = 4096

/** Whole buckets that start in [from, to), grid times in Unix milliseconds. */
export interface Stretch {
  readonly from: number
  readonly to: number
}

/** A part of a series on a grid of chunks that every request shares. */
export interface Piece extends Stretch {
  readonly chunk: number
  /** Whether it is all of its chunk. */
  readonly isWhole: boolean
}

const chunkMs = (interval: Interval) => CHUNK_BUCKETS * INTERVAL_SECONDS[interval] * 1000

/** The times that the points of a chunk are made of: its last bucket may end after it. */
export function toChunkSpan(chunk: number, interval: Interval): Stretch {
  const length = chunkMs(interval)
  return { from: chunk * length, to: (chunk + 1) * length + INTERVAL_SECONDS[interval] * 1000 }
}

/** Cuts a stretch along the grid of chunks. */
export function toPieces({ from, to }: Stretch, interval: Interval): Piece[] {
  const length = chunkMs(interval)
  const pieces: Piece[] = []
  for (let chunk = Math.floor(from / length); chunk * length < to; chunk++) {
    const [start, end] = [chunk * length, (chunk + 1) * length]
    pieces.push({
      chunk,
      from: Math.max(from, start),
      to: Math.min(to, end),
      isWhole: start >= from && end <= to,
    })
  }
  return pieces
}

export interface ChunkSummary {
  readonly points: number
  /** Newest time used, in Unix milliseconds; null without points. */
  readonly asOf: number | null
  /** Differs whenever the data of the points does. */
  readonly digest: string
}

/** The longest bucket, in milliseconds: no observation is farther from the start of its bucket. */

const summaryRow = z.object({
  chunk: z.int(),
  points: z.int(),
  newest: z.int(),
  digest: z.string(),
  parts: z.array(z.string()),
})

/**
 * What the points of a stretch are, by chunk, and the parts of the table that they were read from: while these are the
 * same, so is the data. With a `limit` of points everything after it is left out.
 */
export async function summarize(
  db: Database,
  interval: Interval,
  params: Stretch & { readonly token: number; readonly limit?: number | undefined },
): Promise<{ chunks: Map<number, ChunkSummary>; parts: string }> {
  const rows = await db.rows({
    name: 'historic-financial-summary',
    // The newest observation of a bucket is not the one that is used: of the last bucket the oldest is wanted. One number
    // says both, the later bucket first. Without the tuple a hash of any unknown value is unknown itself.
    sql: `SELECT intDiv(toUnixTimestamp(bucket), {chunk: UInt32}) AS chunk, uniqExact(toUInt32(toUnixTimestamp(bucket))) AS points,
  max(toUnixTimestamp(bucket) * {week: UInt64} + ({week: UInt64} - 1 - (toUnixTimestamp64Milli(as_of) - toUnixTimestamp(bucket) * 1000))) AS last,
  intDiv(last, {week: UInt64}) * 1000 + ({week: UInt64} - 1 - last % {week: UInt64}) AS newest,
  toString(groupBitXor(cityHash64(tuple(bucket, as_of, ${VALUES})))) AS digest,
  groupUniqArray(_part) AS parts
FROM (${params.limit === undefined ? observationsSql(interval) : pointsSql(interval).columns})
GROUP BY chunk`,
    params: { ...params, limit: params.limit ?? null, chunk: chunkMs(interval) / 1000, week: WEEK_MS },
    settings: { max_threads: 2 },
    schema: summaryRow,
  })
  const chunks = rows.map(({ chunk, points, newest, digest }) => [chunk, { points, asOf: newest, digest }] as const)
  return { chunks: new Map(chunks), parts: toPartsKey(rows.flatMap(({ parts }) => parts)) }
}

const toPartsKey = (parts: readonly string[]) => [...new Set(parts)].sort().join()

/** The parts of the table that hold a stretch, as `summarize` gives them. */
export async function readParts(
  db: Database,
  interval: Interval,
  params: Stretch & { readonly token: number },
): Promise<string> {
  const rows = await db.rows({
    name: 'historic-financial-parts',
    sql: `SELECT DISTINCT toString(_part) AS part FROM (${observationsSql(interval)})`,
    params: { ...params },
    schema: z.object({ part: z.string() }),
  })
  return toPartsKey(rows.map(({ part }) => part))
}
