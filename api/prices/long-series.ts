import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { type Interval, type TimeRange, toBucketStart } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Rows } from '../answers/rows.ts'
import { createRowCutter, JSON_SETTINGS, readRows } from '../answers/rows.ts'
import { withSignal } from '../cache/single-flight.ts'
import type { AppContext } from '../route/define-route.ts'
import { type SeriesChunk, toChunks, toPlace } from '../series/chunks.ts'
import { type ChunkSummary, fromLines, pointsSql, readParts, summarize, toLines, toPriceSeries } from './points.ts'

/** Complete buckets of a token that start in the range, at most `limit` points; undefined means all. */
interface SeriesRead extends TimeRange {
  readonly token: number
  readonly interval: Interval
  readonly limit: number | undefined
}

interface LongSeries {
  readonly points: number
  readonly asOf: number | null
  /** Differs whenever the data differs. */
  readonly digest: string
  /** The points as a JSON array, one point per line. Rejects when the query fails early. */
  open(signal: AbortSignal): Promise<Readable>
  /** Called after the last byte was read: whether the bytes match the digest. */
  holds(signal: AbortSignal): Promise<boolean>
}

/** A chunk of a long series, or its requested part. */
interface ChunkRange extends SeriesChunk {
  /** Whether it is the complete chunk. */
  readonly isComplete: boolean
}

/** A chunk that was read for a long answer has its summary. */
interface SummarizedRows extends Rows {
  readonly summary?: ChunkSummary
}

/** A range with points, and the chunk's rows if they are cached. */
interface FilledRange extends ChunkRange {
  readonly summary: ChunkSummary
  readonly cached: Rows | undefined
}

/** Adjacent ranges that are not cached; one statement reads them. */
type Reading = readonly [FilledRange, ...FilledRange[]]

type Reader = (reading: Reading) => Promise<AsyncIterable<Buffer>>

/** Approximate JSON size of a point; used only to decide whether chunks are cached. */
const POINT_BYTES = 220

/**
 * The points of a long series. Chunks that have ended come from the cache if possible; the rest is read from the
 * database and cached while it is sent. The data may change between the summary, which is the basis of the entity tag,
 * and the stream; ClickHouse has no snapshot that spans both. Unchanged table parts prove that it did not, in a
 * fraction of the time. If the parts differ, as after a merge, the summary is made again.
 */
export async function readLongSeries(
  { db, chunks, now }: Pick<AppContext, 'db' | 'chunks' | 'now'>,
  query: SeriesRead,
): Promise<LongSeries> {
  const { token, interval, limit } = query
  const mark = chunks.mark()
  const ended = toBucketStart(now(), interval)
  const series = toPriceSeries(token, interval)
  const isClosed = (range: ChunkRange) => limit === undefined && range.isComplete && range.to <= ended
  const findCached = (range: ChunkRange) =>
    isClosed(range) ? chunks.get<SummarizedRows>(toPlace(series, range).key) : undefined

  const ranges = toChunks(query, interval).map((piece) => toPart(piece, query))
  const cachedOf = new Map(ranges.map((range) => [range, findCached(range)]))
  const missing = ranges.filter((range) => cachedOf.get(range)?.summary === undefined)
  const read = missing.length === 0 ? undefined : await readSummary(db, query, missing)
  const filled = ranges.flatMap((range): FilledRange[] => {
    const rows = cachedOf.get(range)
    const summary = rows?.summary ?? read?.pieces.get(range.piece)
    return summary === undefined ? [] : [{ ...range, summary, cached: rows?.summary && rows }]
  })
  const points = countPoints(filled)
  const fresh = new Map<FilledRange, Rows>()

  return {
    points,
    asOf: filled.at(-1)?.summary.asOf ?? null,
    digest: toDigest(filled),
    open: async (signal) => {
      const hasRoom = chunks.reserve(points * POINT_BYTES, signal)
      return openRows(toReader(db, query, signal), filled, hasRoom ? fresh : undefined)
    },
    holds: async (signal) => {
      if (read !== undefined && !(await read.isUnchanged(withSignal(db, signal)))) return false
      for (const [range, rows] of fresh) {
        if (isClosed(range)) chunks.store(toPlace(series, range), mark, { ...rows, summary: range.summary })
      }
      fresh.clear()
      return true
    },
  }
}

/** The part of a chunk that lies in a range. */
const toPart = ({ piece, from, to }: SeriesChunk, range: TimeRange): ChunkRange => ({
  piece,
  from: Math.max(from, range.from),
  to: Math.min(to, range.to),
  isComplete: from >= range.from && to <= range.to,
})

/** Reads the summary of the ranges that are not cached, with a check whether it is still valid. */
async function readSummary(db: Database, { token, interval, limit }: SeriesRead, missing: readonly ChunkRange[]) {
  const params = { token, limit, from: missing[0]?.from ?? 0, to: missing.at(-1)?.to ?? 0 }
  const { pieces, parts } = await summarize(db, interval, params)
  return {
    pieces,
    isUnchanged: async (bound: Database) => {
      if ((await readParts(bound, interval, params)) === parts) return true
      const current = await summarize(bound, interval, params)
      return missing.every(({ piece }) => current.pieces.get(piece)?.digest === pieces.get(piece)?.digest)
    },
  }
}

const countPoints = (ranges: readonly FilledRange[]) => ranges.reduce((sum, { summary }) => sum + summary.points, 0)

function toDigest(ranges: readonly FilledRange[]): string {
  const hash = createHash('sha256')
  for (const { piece, summary } of ranges) {
    hash.update(`${piece} ${summary.points} ${summary.asOf} ${summary.digest};`)
  }
  return hash.digest('base64url')
}

const toReader =
  (db: Database, { token, interval }: SeriesRead, signal: AbortSignal): Reader =>
  (reading) =>
    db.stream({
      name: 'historic-financial-stream',
      sql: pointsSql(interval).rows,
      params: { token, from: reading[0].from, to: reading.at(-1)?.to, limit: countPoints(reading) },
      settings: { ...JSON_SETTINGS, output_format_json_array_of_rows: 1 },
      signal,
      isLong: true,
    })

/** Groups adjacent ranges that are not cached. */
function toReadings(ranges: readonly FilledRange[]): Reading[] {
  const readings: [FilledRange, ...FilledRange[]][] = []
  let isOpen = false
  for (const range of ranges) {
    const reading = readings.at(-1)
    if (range.cached !== undefined) isOpen = false
    else if (isOpen && reading !== undefined) reading.push(range)
    else {
      readings.push([range])
      isOpen = true
    }
  }
  return readings
}

/** The array of all points. The bytes of each range that was read are also stored in `fresh`. */
async function openRows(
  read: Reader,
  ranges: readonly FilledRange[],
  fresh: Map<FilledRange, Rows> | undefined,
): Promise<Readable> {
  const readings = toReadings(ranges)
  // A query that fails early must be detected before the first byte is sent.
  const [first] = readings
  const opened = first === undefined ? undefined : await read(first)
  const reader: Reader = async (reading) => (reading === first && opened !== undefined ? opened : read(reading))
  return Readable.from(writeRows(readings, ranges, reader, fresh), { objectMode: false })
}

async function* writeRows(
  readings: readonly Reading[],
  ranges: readonly FilledRange[],
  read: Reader,
  fresh: Map<FilledRange, Rows> | undefined,
): AsyncGenerator<Buffer> {
  const readingOf = new Map(readings.map((reading) => [reading[0], reading]))
  let before = Buffer.from('[\n')
  for (const range of ranges) {
    if (range.cached !== undefined) {
      yield before
      yield toLines(range.cached)
    }
    const reading = readingOf.get(range)
    if (reading !== undefined) {
      const cutter = fresh && createRowCutter(reading.map(({ summary }) => summary.points))
      for await (const bytes of readRows(await read(reading))) {
        cutter?.push(bytes)
        if (before.length > 0) yield before
        before = Buffer.alloc(0)
        yield bytes
      }
      for (const [index, bytes] of (cutter?.end() ?? []).entries()) {
        const of = reading[index]
        if (of !== undefined) fresh?.set(of, fromLines(bytes, of.summary.points))
      }
    }
    if (range.cached !== undefined || reading !== undefined) before = Buffer.from(',\n')
  }
  yield ranges.length === 0 ? Buffer.from('[\n\n]\n') : Buffer.from('\n]\n')
}
