import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import { INTERVAL_SECONDS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Representation } from '../answers/formats.ts'
import { JSON_SETTINGS, type Rows, readWritten, type Slice, toRows, toSlice } from '../answers/rows.ts'
import type { ChunkCache, ChunkKey, Sized } from '../cache/chunks.ts'

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

/** Buckets per chunk: one day of 5-minute points. */
const CHUNK_BUCKETS = 288

/** A chunk of a series: a fixed range of buckets on a grid that all requests share. */
export interface SeriesChunk extends TimeRange {
  /** The number of the chunk. */
  readonly number: number
}

/** A series with cached chunks. */
export interface Series {
  /** Distinguishes it from all other cached series. */
  readonly key: string
  readonly dataset: string
  readonly interval: Interval
}

/** A series with a function that reads its chunks, for answers assembled from chunks of type `C`. */
export interface ChunkSource<C extends Sized> extends Series {
  /** Reads rows of the series, oldest first, including all with buckets that start in the range. Ends with the signal. */
  read(db: Database, range: TimeRange, abandoned: AbortSignal): Promise<Rows>
  /** Builds a chunk that is cached from its rows. */
  pack(slice: Slice): C | Promise<C>
}

/** A series that can also count its rows, for answers with a limited number of rows. */
export interface CountedSource<C extends Sized> extends ChunkSource<C> {
  /** Number of rows per chunk, of buckets that start in the range; empty chunks may be absent. */
  count(db: Database, range: TimeRange, chunkMs: number): Promise<ReadonlyMap<number, number>>
  /** Number of rows of a chunk in a range. */
  countIn(chunk: C, range: TimeRange): number
  readonly empty: C
}

/** Dependencies for reading chunks; `signal` ends the wait. */
interface Reader {
  readonly chunks: ChunkCache
  readonly db: Database
  readonly signal: AbortSignal
}

export const toChunkMs = (interval: Interval): number => CHUNK_BUCKETS * INTERVAL_SECONDS[interval] * 1000

/** The complete chunks that contain a range. */
export function toChunks({ from, to }: TimeRange, interval: Interval): SeriesChunk[] {
  const length = toChunkMs(interval)
  const chunks: SeriesChunk[] = []
  for (let number = Math.floor(from / length); number * length < to; number++) {
    chunks.push({ number, from: number * length, to: (number + 1) * length })
  }
  return chunks
}

/** The cache key of a chunk. The observations of its last bucket may be later than the chunk's end. */
function toPlace({ key, dataset, interval }: Series, { number, from, to }: SeriesChunk): ChunkKey & SeriesChunk {
  const until = to + INTERVAL_SECONDS[interval] * 1000
  return { key: `${key} ${interval} ${number}`, dataset, number, from, to: until }
}

/** Maximum number of chunks that a statement reads: their rows are in memory as text. */
const STATEMENT_CHUNKS = 32

/** Reads chunks in order, with one statement for all that are not cached, or with several for a long range. */
export async function readChunks<C extends Sized>(
  source: ChunkSource<C>,
  { chunks, signal }: Omit<Reader, 'db'>,
  requested: readonly SeriesChunk[],
): Promise<C[]> {
  const length = toChunkMs(source.interval)
  const toRange = ({ number }: { number: number }) => ({ from: number * length, to: (number + 1) * length })
  const places = requested.map((chunk) => toPlace(source, chunk))
  const read = async (missing: readonly (ChunkKey & SeriesChunk)[], db: Database, abandoned: AbortSignal) => {
    const read: C[] = []
    for (let first = 0; first < missing.length; first += STATEMENT_CHUNKS) {
      const ranges = missing.slice(first, first + STATEMENT_CHUNKS).map(toRange)
      const rows = await source.read(db, { from: ranges[0]?.from ?? 0, to: ranges.at(-1)?.to ?? 0 }, abandoned)
      // One after the other: together the chunks of a year would need much memory while they are deflated.
      for (const range of ranges) read.push(await source.pack(toSlice(rows, range)))
    }
    return read
  }
  return chunks.read(places, read, signal)
}

/**
 * The chunks with the first rows of a range, oldest first: at least `least` rows if there are that many. First reads the
 * chunks that would contain them if no bucket were empty. If that is not enough and no cached chunk follows, one
 * statement counts the rows per chunk. Two more statements are therefore enough, however sparse the series is.
 */
export async function readFirst<C extends Sized>(
  source: CountedSource<C>,
  reader: Reader,
  range: TimeRange,
  least: number,
): Promise<C[]> {
  const rest = toChunks(range, source.interval)
  const found = await readChunks(source, reader, rest.splice(0, Math.ceil(least / CHUNK_BUCKETS) + 1))
  let rows = found.reduce((sum, chunk) => sum + source.countIn(chunk, range), 0)
  while (rows < least && rest.length > 0) {
    const cached = reader.chunks.get<C>(toPlace(source, rest[0] as SeriesChunk).key)
    if (cached !== undefined) rest.shift()
    const next =
      cached === undefined
        ? await readChunks(source, reader, await takeFilled(source, reader, rest, least - rows))
        : [cached]
    for (const chunk of next) {
      rows += source.countIn(chunk, range)
      found.push(chunk)
    }
  }
  return found
}

/**
 * Removes from `rest` the chunks with the next `least` rows. The chunks before and between them are cached as empty.
 */
async function takeFilled<C extends Sized>(
  source: CountedSource<C>,
  { chunks, db }: Reader,
  rest: SeriesChunk[],
  least: number,
): Promise<readonly SeriesChunk[]> {
  const mark = chunks.mark()
  const range = { from: rest[0]?.from ?? 0, to: rest.at(-1)?.to ?? 0 }
  const counts = await source.count(db, range, toChunkMs(source.interval))
  const taken: SeriesChunk[] = []
  for (let rows = 0; rows < least; ) {
    const chunk = rest.shift()
    if (chunk === undefined) break
    const count = counts.get(chunk.number) ?? 0
    if (count > 0) taken.push(chunk)
    else chunks.store(toPlace(source, chunk), mark, source.empty)
    rows += count
  }
  return taken
}

/** The newest data time in the slices, in Unix milliseconds; null if they have no rows. */
export function findNewest(slices: readonly Slice[]): number | null {
  let newest: number | null = null
  for (const { rows, first, end } of slices) {
    for (let row = first; row < end; row++) newest = Math.max(newest ?? 0, rows.asOf(row))
  }
  return newest
}

export const countSlices = (slices: readonly Slice[]) => slices.reduce((sum, { first, end }) => sum + end - first, 0)

/** Number of rows in slices, oldest first, with a time of at least `since`. */
export const countSince = (slices: readonly Slice[], since: number): number =>
  slices.reduce((sum, { rows, first, end }) => {
    const late = toSlice(rows, { from: since, to: Number.POSITIVE_INFINITY })
    return sum + Math.max(0, end - Math.max(first, late.first))
  }, 0)

/** The first `most` rows of slices. */
export function cutSlices(slices: readonly Slice[], most: number): Slice[] {
  const cut: Slice[] = []
  let rows = 0
  for (const slice of slices) {
    const end = Math.min(slice.end, slice.first + most - rows)
    cut.push({ ...slice, end })
    rows += end - slice.first
  }
  return cut
}

/** Whether an answer consists of complete rows as JSON, which are cached; ClickHouse writes all other forms. */
export const hasFullRows = ({ format, hasAllFields }: Representation): boolean => format === 'json' && hasAllFields

/**
 * Reads all rows of a short series, such as a daily one: once for all ranges, and again after a change event of
 * the dataset, which may have several series.
 * @throws DataError `storage`
 */
export async function readAllRows(
  { chunks, signal }: { readonly chunks: ChunkCache; readonly signal: AbortSignal },
  { dataset, series, entity }: { readonly dataset: string; readonly series: string; readonly entity: number },
  statement: RowsStatement,
): Promise<Rows> {
  const always = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY }
  const place = { key: `${series} ${entity}`, dataset, ...always }
  const [rows] = await chunks.read([place], async (_, db) => [await writeRows(db, statement)], signal)
  return rows as Rows
}
