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
import type { Database } from '../../shared/store/store.ts'
import type { CacheKey, CacheReader, Sized } from '../cache/cache.ts'
import { JSON_SETTINGS, type Rows, readWritten, toJsonSql, toRows, toSlice } from '../formats/formats.ts'
import {
  NO_POINTS,
  type Points,
  type PointsChunk,
  type PointsForm,
  packPoints,
  toPlainChunk,
  toPoints,
} from './points.ts'

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
FROM (SELECT row_at, as_of, ${toJsonSql('record')} AS row FROM (${sql}))`,
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

/** The stored rows of a chunk in a compact form. */
export interface PackedRows {
  readonly bytes: Buffer
  readonly count: number
}

/**
 * The stored rows of a series, which are cached in a compact form. The rows take a third of the memory of points, and
 * making points from rows takes much less time than a statement.
 */
export interface StoredSource {
  /** Rows that may still be added begin here, in Unix milliseconds: they are not cached in this form. */
  readonly until: number
  /** Maximum number of chunks of an answer that is made from rows; those of a longer one are read as points. */
  readonly mostChunks: number
  /** Reads the rows of adjacent chunks, oldest first. Ends with the signal. */
  read(chunks: readonly TimeRange[], abandoned: AbortSignal): Promise<PackedRows[]>
  /** The points of a chunk in a range, oldest first. */
  toPoints(packed: PackedRows, range: TimeRange): Rows
}

/** A series with cached chunks, in one form of its text. */
export interface Series {
  /** The identity of the series in the cache. The form of the text is not part of it. */
  readonly key: string
  readonly dataset: string
  readonly form: PointsForm
  /** Buckets per chunk; null if one chunk has all points. */
  readonly chunkBuckets: number | null
  /** Reads the points with buckets that start in the range, oldest first. Ends with the signal. */
  read(db: Database, range: TimeRange, abandoned: AbortSignal): Promise<Rows>
  /** Set if a miss reads stored rows. */
  readonly stored?: StoredSource
  /** Number of points by chunk, of buckets that start in the range; empty chunks may be absent. */
  count(db: Database, range: TimeRange, toChunkSql: (at: string) => string): Promise<ReadonlyMap<number, number>>
}

/** Dependencies for reading chunks. */
export interface Reader extends CacheReader {
  readonly db: Database
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

interface ChunkKey extends CacheKey {
  readonly chunk: SeriesChunk
}

/** The cache key of a chunk. The observations of its last bucket may be later than the chunk's end. */
function toChunkKey({ key, dataset, form, stored }: Series, chunk: SeriesChunk): ChunkKey {
  const { interval, order, hasLines } = form
  const range = { from: chunk.from, to: chunk.to + INTERVAL_SECONDS[interval] * 1000 }
  const cacheKey = `${key} ${interval}${order === 'asc' ? '' : ' desc'}${hasLines ? ' lines' : ''} ${chunk.number}`
  return { key: cacheKey, datasets: [dataset], range, isDerived: stored !== undefined, chunk }
}

/**
 * Chunks per block: of 5-minute points a week. A statement that reads a week takes ClickHouse a fifth longer than one
 * that reads a day.
 */
const BLOCK_CHUNKS = 7

/** The stored rows of adjacent chunks, which are read together. */
interface StoredBlock extends Sized {
  readonly chunks: readonly PackedRows[]
  /** Whether an answer was made from the rows of each chunk. */
  readonly isUsed: boolean[]
}

const BLOCK_OVERHEAD_BYTES = 1500

/** Copies the rows, because buffers of zlib keep more memory than they use. */
function toBlock(packed: readonly PackedRows[]): StoredBlock {
  const all = Buffer.concat(packed.map(({ bytes }) => bytes))
  let at = 0
  const chunks = packed.map(({ bytes, count }) => {
    at += bytes.length
    return { bytes: all.subarray(at - bytes.length, at), count }
  })
  return toStoredBlock(chunks, all.length)
}

const toStoredBlock = (chunks: readonly PackedRows[], bytes: number): StoredBlock => ({
  chunks,
  isUsed: chunks.map(() => false),
  size: bytes + BLOCK_OVERHEAD_BYTES,
  points: chunks.reduce((sum, { count }) => sum + count, 0),
})

/** Bytes of a chunk's facts in a written block: the number of its rows, and their bytes. */
const FACTS_BYTES = 8

/** A written block begins with the facts of its chunks. */
const BLOCK_ON_DISK = {
  toBytes: ({ chunks }: StoredBlock): Buffer => {
    const facts = Buffer.alloc(FACTS_BYTES * BLOCK_CHUNKS)
    for (const [index, { count, bytes }] of chunks.entries()) {
      facts.writeUInt32LE(count, FACTS_BYTES * index)
      facts.writeUInt32LE(bytes.length, FACTS_BYTES * index + 4)
    }
    return Buffer.concat([facts, ...chunks.map(({ bytes }) => bytes)])
  },
  fromBytes: (written: Buffer): StoredBlock => {
    let end = FACTS_BYTES * BLOCK_CHUNKS
    const chunks = Array.from({ length: BLOCK_CHUNKS }, (_, index) => {
      const [from, at] = [end, FACTS_BYTES * index]
      end += written.readUInt32LE(at + 4)
      return { bytes: written.subarray(from, end), count: written.readUInt32LE(at) }
    })
    return toStoredBlock(chunks, written.length)
  },
}

interface BlockKey extends CacheKey {
  readonly range: TimeRange
  readonly chunks: readonly TimeRange[]
}

/** The cache key of the block that contains a chunk, for all forms of the series. */
function toBlockKey({ key, dataset, form, chunkBuckets }: Series, { number }: SeriesChunk): BlockKey {
  const { interval } = form
  const length = toChunkMs(interval, chunkBuckets ?? CHUNK_BUCKETS)
  const block = Math.floor(number / BLOCK_CHUNKS)
  const first = block * BLOCK_CHUNKS * length + MONDAY_SHIFT_MS
  const chunks = Array.from({ length: BLOCK_CHUNKS }, (_, index) => {
    const from = first + index * length
    return { from, to: from + length }
  })
  const to = first + BLOCK_CHUNKS * length + INTERVAL_SECONDS[interval] * 1000
  const range = { from: first, to }
  return { key: `${key} ${interval} rows ${block}`, datasets: [dataset], range, chunks, spill: BLOCK_ON_DISK }
}

/**
 * Makes the points of chunks from their stored rows, and reads the blocks of rows that are not cached. When a chunk is
 * used again, and the cache is not full of other values, all its points are made, deflated and cached: only then the time
 * and the memory are worth it. Else only the points in the range are made, for one answer.
 */
async function readFromRows(
  { series, stored }: { readonly series: Series; readonly stored: StoredSource },
  reader: CacheReader,
  requested: readonly SeriesChunk[],
  range: TimeRange,
): Promise<PointsChunk[]> {
  const { cache, onSuccess } = reader
  // Taken before the rows are found: a change of the data after that makes points from them outdated.
  const mark = cache.mark()
  const keys = requested.map((chunk) => toBlockKey(series, chunk))
  const blocks = [...new Map(keys.map((one) => [one.key, one])).values()]
  const read = (missing: readonly BlockKey[], _: Database, abandoned: AbortSignal) =>
    Promise.all(missing.map(async ({ chunks }) => toBlock(await stored.read(chunks, abandoned))))
  const found = await cache.getEach(blocks, read, reader)
  const blockOf = new Map(found.map((block, index) => [blocks[index]?.key, block]))
  const points: PointsChunk[] = []
  for (const [index, chunk] of requested.entries()) {
    const block = blockOf.get(keys[index]?.key) as StoredBlock
    const inBlock = chunk.number - Math.floor(chunk.number / BLOCK_CHUNKS) * BLOCK_CHUNKS
    const rows = block.chunks[inBlock] as PackedRows
    const isKept = block.isUsed[inBlock] === true && cache.isWorthDeriving()
    onSuccess(() => {
      block.isUsed[inBlock] = true
    })
    const concerned = isKept ? chunk : { from: Math.max(chunk.from, range.from), to: Math.min(chunk.to, range.to) }
    const slice = toSlice(stored.toPoints(rows, concerned), concerned)
    if (isKept) {
      const packed = await packPoints(slice, series.form)
      cache.store(toChunkKey(series, chunk), mark, packed)
      points.push(packed)
    } else points.push(toPlainChunk(slice, series.form))
  }
  return points
}

/** Maximum number of chunks that a statement reads: their rows are in memory as text. */
const STATEMENT_CHUNKS = 32

/** Whether stored rows of a chunk may be cached: no more are added. */
const isComplete = (series: Series, chunk: SeriesChunk) =>
  series.stored !== undefined && toBlockKey(series, chunk).range.to <= series.stored.until

/** Whether the points of a chunk are cached, or its rows. */
const isCached = (series: Series, { cache }: CacheReader, chunk: SeriesChunk): boolean =>
  cache.find(toChunkKey(series, chunk).key) !== undefined ||
  (isComplete(series, chunk) && cache.find(toBlockKey(series, chunk).key) !== undefined)

/** The chunks, oldest first, with their points in a range. Only chunks that are not cached are read. */
async function readChunks(
  series: Series,
  reader: CacheReader,
  requested: readonly SeriesChunk[],
  range: TimeRange,
): Promise<readonly PointsChunk[]> {
  const { stored } = series
  if (stored === undefined || requested.length > stored.mostChunks) return readPoints(series, reader, requested)
  const found = requested.map((chunk) => reader.cache.find<PointsChunk>(toChunkKey(series, chunk).key))
  const missing = requested.filter((_, index) => found[index] === undefined)
  if (missing.length === 0) return found as readonly PointsChunk[]
  const complete = missing.filter((chunk) => isComplete(series, chunk))
  const growing = missing.filter((chunk) => !isComplete(series, chunk))
  const [fromRows, fromPoints] = await Promise.all([
    readFromRows({ series, stored }, reader, complete, range),
    readPoints(series, reader, growing),
  ])
  const made = new Map([
    ...complete.map((chunk, index) => [chunk.number, fromRows[index]] as const),
    ...growing.map((chunk, index) => [chunk.number, fromPoints[index]] as const),
  ])
  return requested.map((chunk, index) => (found[index] ?? made.get(chunk.number)) as PointsChunk)
}

/** Reads chunks in order, with one statement for all that are not cached, or with several for a long range. */
function readPoints(
  series: Series,
  reader: CacheReader,
  requested: readonly SeriesChunk[],
): readonly PointsChunk[] | Promise<readonly PointsChunk[]> {
  const read = async (missing: readonly ChunkKey[], db: Database, abandoned: AbortSignal) => {
    const read: PointsChunk[] = []
    for (let first = 0; first < missing.length; first += STATEMENT_CHUNKS) {
      const ranges = missing.slice(first, first + STATEMENT_CHUNKS).map(({ chunk }) => chunk)
      const times = ranges.flatMap(({ from, to }) => [from, to])
      const rows = await series.read(db, { from: Math.min(...times), to: Math.max(...times) }, abandoned)
      // One after the other: together the chunks of a year would need much memory while they are deflated.
      for (const range of ranges) read.push(await packPoints(toSlice(rows, range), series.form))
    }
    return read
  }
  const keys = requested.map((chunk) => toChunkKey(series, chunk))
  return reader.cache.getEach(keys, read, reader)
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
  const found = [...(await readChunks(series, reader, rest.splice(0, Math.ceil(least / buckets) + 1), range))]
  let points = found.reduce((sum, chunk) => sum + countIn(chunk), 0)
  while (points < least && rest.length > 0) {
    const first = rest[0] as SeriesChunk
    const needed = isCached(series, reader, first)
      ? rest.splice(0, 1)
      : await takeFilled(series, reader, rest, least - points)
    const next = await readChunks(series, reader, needed, range)
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
  { cache, db }: Reader,
  rest: SeriesChunk[],
  least: number,
): Promise<readonly SeriesChunk[]> {
  const mark = cache.mark()
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
    else cache.store(toChunkKey(series, chunk), mark, NO_POINTS)
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
      : await readChunks(series, reader, toChunks(range, series), range)
  const all = toPoints(chunks, range, series.form)
  return all.count > limit ? { points: all.head(limit), isCut: true } : { points: all, isCut: false }
}
