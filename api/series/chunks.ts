import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import {
  countBuckets,
  DAY_MS,
  END_OF_TIME,
  INTERVAL_SECONDS,
  type Interval,
  MONDAY_SHIFT_MS,
  type TimeRange,
} from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { JSON_SETTINGS, type Rows, readWritten, toRows, toSlice } from '../answers/rows.ts'
import type { ChunkCache, ChunkKey } from '../cache/chunks.ts'
import { NO_POINTS, type Points, type PointsChunk, type PointsForm, packPoints, toPoints } from './points.ts'

export interface RowsStatement {
  readonly name: string
  /**
   * Selects `record` (a named tuple, the row), `row_at` (DateTime64(3), the time by which rows are ordered) and `as_of`
   * (DateTime64(3)) in the requested order.
   */
  readonly sql: string
  readonly params: Readonly<Record<string, unknown>>
}

const numbers = z.array(z.number())
const head = z.tuple([numbers, numbers, numbers])

/**
 * Reads rows with their JSON as ClickHouse writes it, in one statement with their lengths and times.
 * @throws DataError `storage`
 */
export async function writeRows(db: Database, { sql, ...statement }: RowsStatement): Promise<Rows> {
  const written = await readWritten(db, {
    ...statement,
    sql: `SELECT concat(toJSONString(tuple(groupArray(length(row)), groupArray(toUnixTimestamp64Milli(row_at)), groupArray(toUnixTimestamp64Milli(as_of)))),
  '\\n', arrayStringConcat(groupArray(row), ','))
FROM (SELECT row_at, as_of, toJSONString(record) AS row FROM (${sql}))`,
    settings: JSON_SETTINGS,
    signal: AbortSignal.timeout(db.answerTimeoutMs),
  })
  const parsed = head.safeParse(written.head)
  const [lengths, at, asOf] = parsed.data ?? [[], [], []]
  const starts = toStarts(lengths)
  const fullCount = lengths.length === 0 ? 0 : (starts.at(-1) ?? 0) - 1
  if (!parsed.success || written.body.length !== fullCount) {
    throw new DataError('storage', `ClickHouse, ${statement.name}: an answer of an unexpected shape`)
  }
  return toRows(written.body, starts, Float64Array.from(at), Float64Array.from(asOf))
}

/** Start offsets of rows with these lengths, separated by commas. */
function toStarts(lengths: readonly number[]): Uint32Array {
  const starts = new Uint32Array(lengths.length + 1)
  for (const [row, length] of lengths.entries()) starts[row + 1] = (starts[row] ?? 0) + length + 1
  return starts
}

/** Buckets of the longest chunks: one day of 5-minute points. */
const CHUNK_BUCKETS = 288

/** A chunk of a series: a fixed range of buckets on a grid that all requests share. */
export interface SeriesChunk extends TimeRange {
  /** The number of the chunk. */
  readonly number: number
}

/** A series with cached chunks, in one form of its text. */
export interface Series {
  /** Distinguishes it from all other cached series, apart from its form. */
  readonly key: string
  readonly dataset: string
  readonly form: PointsForm
  /** Buckets per chunk; null if one chunk has all points. */
  readonly chunkBuckets: number | null
  /** Reads the points with buckets that start in the range, oldest first. Ends with the signal. */
  read(db: Database, range: TimeRange, abandoned: AbortSignal): Promise<Rows>
  /** Number of points by chunk, of buckets that start in the range; empty chunks may be absent. */
  count(db: Database, range: TimeRange, toChunkSql: (at: string) => string): Promise<ReadonlyMap<number, number>>
}

/** Dependencies for reading chunks; `signal` ends the wait. */
export interface Reader {
  readonly chunks: ChunkCache
  readonly db: Database
  readonly signal: AbortSignal
}

export const toChunkMs = (interval: Interval, buckets = CHUNK_BUCKETS): number =>
  buckets * INTERVAL_SECONDS[interval] * 1000

/** A miss reads the stored rows of a whole chunk, which are of the finest interval if coarser points derive from them. */
const MOST_DERIVED_MS = 32 * DAY_MS
const LEAST_BUCKETS = 16

/** Buckets per chunk of a series with its own points for the interval, or with points derived from finer rows. */
export const toChunkBuckets = (interval: Interval, isDerived: boolean): number =>
  isDerived
    ? Math.max(LEAST_BUCKETS, Math.min(CHUNK_BUCKETS, MOST_DERIVED_MS / (INTERVAL_SECONDS[interval] * 1000)))
    : CHUNK_BUCKETS

/**
 * The only chunk of a series without a grid of chunks. No dataset is older than its start. Of a distributed table, a
 * shard gets the bounds as texts of seconds, and cannot parse one with a single digit.
 */
const EVERYTHING: SeriesChunk = { number: 0, from: Date.UTC(2000, 0, 1), to: END_OF_TIME }

/** The complete chunks that contain a range. Chunks are counted from the first Monday, on which all grids begin. */
function toChunks({ from, to }: TimeRange, { form, chunkBuckets }: Series): SeriesChunk[] {
  if (chunkBuckets === null) return [EVERYTHING]
  const length = toChunkMs(form.interval, chunkBuckets)
  const toStart = (number: number) => number * length + MONDAY_SHIFT_MS
  const chunks: SeriesChunk[] = []
  for (let number = Math.floor((from - MONDAY_SHIFT_MS) / length); toStart(number) < to; number++) {
    chunks.push({ number, from: toStart(number), to: toStart(number + 1) })
  }
  return chunks
}

/** The cache key of a chunk. The observations of its last bucket may be later than the chunk's end. */
function toPlace({ key, dataset, form }: Series, chunk: SeriesChunk): ChunkKey & SeriesChunk {
  const { interval, order, hasLines } = form
  const until = chunk.to + INTERVAL_SECONDS[interval] * 1000
  const place = `${key} ${interval}${order === 'asc' ? '' : ' desc'}${hasLines ? ' lines' : ''} ${chunk.number}`
  return { key: place, dataset, number: chunk.number, from: chunk.from, to: until }
}

/** Maximum number of chunks that a statement reads: their rows are in memory as text. */
const STATEMENT_CHUNKS = 32

/** Reads chunks in order, with one statement for all that are not cached, or with several for a long range. */
function readChunks(
  series: Series,
  { chunks, signal }: Omit<Reader, 'db'>,
  requested: readonly SeriesChunk[],
): Promise<PointsChunk[]> {
  const chunkOf = new Map(requested.map((chunk) => [chunk.number, chunk]))
  const places = requested.map((chunk) => toPlace(series, chunk))
  const read = async (missing: readonly (ChunkKey & SeriesChunk)[], db: Database, abandoned: AbortSignal) => {
    const read: PointsChunk[] = []
    for (let first = 0; first < missing.length; first += STATEMENT_CHUNKS) {
      const ranges = missing
        .slice(first, first + STATEMENT_CHUNKS)
        .map(({ number }) => chunkOf.get(number) as TimeRange)
      const times = ranges.flatMap(({ from, to }) => [from, to])
      const rows = await series.read(db, { from: Math.min(...times), to: Math.max(...times) }, abandoned)
      // One after the other: together the chunks of a year would need much memory while they are deflated.
      for (const range of ranges) read.push(await packPoints(toSlice(rows, range), series.form))
    }
    return read
  }
  return chunks.read(places, read, signal)
}

/**
 * The chunks with the first points of a range in the order of its form: at least `least` points if there are that many.
 * First reads the chunks that would contain them if no bucket were empty. If that is not enough and no cached chunk
 * follows, one statement counts the points per chunk. Two more statements are therefore enough, however sparse the
 * series is.
 */
async function readFirst(series: Series, reader: Reader, range: TimeRange, least: number): Promise<PointsChunk[]> {
  const rest = toChunks(range, series)
  if (series.form.order === 'desc') rest.reverse()
  const buckets = series.chunkBuckets ?? Number.POSITIVE_INFINITY
  const countIn = (chunk: PointsChunk) => toPoints([chunk], range, series.form).count
  const found = await readChunks(series, reader, rest.splice(0, Math.ceil(least / buckets) + 1))
  let points = found.reduce((sum, chunk) => sum + countIn(chunk), 0)
  while (points < least && rest.length > 0) {
    const cached = reader.chunks.get<PointsChunk>(toPlace(series, rest[0] as SeriesChunk).key)
    if (cached !== undefined) rest.shift()
    const next =
      cached === undefined
        ? await readChunks(series, reader, await takeFilled(series, reader, rest, least - points))
        : [cached]
    for (const chunk of next) {
      points += countIn(chunk)
      found.push(chunk)
    }
  }
  return series.form.order === 'desc' ? found.reverse() : found
}

/**
 * Removes from `rest` the chunks with the next `least` points. The chunks before and between them are cached as empty.
 */
async function takeFilled(
  series: Series,
  { chunks, db }: Reader,
  rest: SeriesChunk[],
  least: number,
): Promise<readonly SeriesChunk[]> {
  const mark = chunks.mark()
  const ends = [rest[0], rest.at(-1)].flatMap((chunk) => (chunk === undefined ? [] : [chunk.from, chunk.to]))
  const range = { from: Math.min(...ends), to: Math.max(...ends) }
  const seconds = toChunkMs(series.form.interval, series.chunkBuckets ?? CHUNK_BUCKETS) / 1000
  const toChunkSql = (at: string) => `intDiv(toUnixTimestamp(${at}) - ${MONDAY_SHIFT_MS / 1000}, ${seconds})`
  const counts = await series.count(db, range, toChunkSql)
  const taken: SeriesChunk[] = []
  for (let points = 0; points < least; ) {
    const chunk = rest.shift()
    if (chunk === undefined) break
    const count = counts.get(chunk.number) ?? 0
    if (count > 0) taken.push(chunk)
    else chunks.store(toPlace(series, chunk), mark, NO_POINTS)
    points += count
  }
  return taken
}

/**
 * The first `limit` points of a range in the order of the form, assembled from cached chunks; only chunks that are not
 * cached are read. `isCut` if more points follow in the range.
 */
export async function selectPoints(
  series: Series,
  reader: Reader,
  range: TimeRange,
  limit = Number.POSITIVE_INFINITY,
): Promise<{ readonly points: Points; readonly isCut: boolean }> {
  const { interval } = series.form
  // One additional point shows whether more follow.
  const chunks =
    limit < countBuckets(range.from, range.to, interval)
      ? await readFirst(series, reader, range, limit + 1)
      : await readChunks(series, reader, toChunks(range, series))
  const all = toPoints(chunks, range, series.form)
  return all.count > limit ? { points: all.head(limit), isCut: true } : { points: all, isCut: false }
}
