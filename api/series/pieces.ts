import { INTERVAL_SECONDS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Memory, Place } from '../answers/memory.ts'
import { detach, NO_ROWS, type Rows, type Slice, toSlice } from '../answers/rows.ts'

/** Buckets of a piece: a day of 5-minute points, some 60 kB of JSON. */
const PIECE_BUCKETS = 288

/** A piece of a series: the buckets that start in one stretch of the grid that all requests share. */
export interface Piece extends TimeRange {
  /** Which stretch. */
  readonly piece: number
}

/** A series whose pieces are kept. */
export interface Series {
  /** What tells it from all other series that are kept. */
  readonly key: string
  readonly dataset: string
  readonly interval: Interval
}

/** One that answers are put together from. */
export interface PieceSource extends Series {
  /** Rows of the series, oldest first, among them all whose buckets start in a range. Ends with the signal. */
  read(db: Database, range: TimeRange, abandoned: AbortSignal): Promise<Rows>
}

/** One that also tells where it has rows at all, for answers that end after some of them. */
export interface CountedSource extends PieceSource {
  /** How many rows each piece has whose buckets start in a range; those without any may be left out. */
  count(db: Database, range: TimeRange, pieceMs: number): Promise<ReadonlyMap<number, number>>
}

/** What a request needs to read pieces; `signal` ends its waiting. */
interface Reader {
  readonly memory: Memory
  readonly db: Database
  readonly signal: AbortSignal
}

export const toPieceMs = (interval: Interval): number => PIECE_BUCKETS * INTERVAL_SECONDS[interval] * 1000

/** The pieces that hold a range, whole. */
export function toPieces({ from, to }: TimeRange, interval: Interval): Piece[] {
  const length = toPieceMs(interval)
  const pieces: Piece[] = []
  for (let piece = Math.floor(from / length); piece * length < to; piece++) {
    pieces.push({ piece, from: piece * length, to: (piece + 1) * length })
  }
  return pieces
}

/** Where a piece is kept. The observations of its last bucket may lie behind it. */
export function toPlace({ key, dataset, interval }: Series, piece: Piece): Place & Piece {
  const to = piece.to + INTERVAL_SECONDS[interval] * 1000
  return { key: `${key} ${interval} ${piece.piece}`, dataset, piece: piece.piece, from: piece.from, to }
}

/** Pieces in order, with one statement for all that are not kept. */
async function readPieces(source: PieceSource, { memory, signal }: Reader, pieces: readonly Piece[]): Promise<Rows[]> {
  const length = toPieceMs(source.interval)
  const toRange = ({ piece }: { piece: number }) => ({ from: piece * length, to: (piece + 1) * length })
  const places = pieces.map((piece) => toPlace(source, piece))
  const read = async (missing: readonly (Place & Piece)[], db: Database, abandoned: AbortSignal) => {
    const ranges = missing.map(toRange)
    const range = { from: ranges[0]?.from ?? 0, to: ranges.at(-1)?.to ?? 0 }
    const rows = await source.read(db, range, abandoned)
    return ranges.map((range) => detach(toSlice(rows, range)))
  }
  return memory.shelf<Rows>().ask(places, read, signal)
}

/** All rows of a range, oldest first, if all of its pieces are kept. */
export function peekRange(series: Series, memory: Memory, range: TimeRange): Slice[] | undefined {
  const shelf = memory.shelf<Rows>()
  const slices: Slice[] = []
  for (const piece of toPieces(range, series.interval)) {
    const rows = shelf.get(toPlace(series, piece).key)
    if (rows === undefined) return undefined
    slices.push(toSlice(rows, range))
  }
  return slices
}

/** All rows of a range, oldest first. */
export async function readRange(source: PieceSource, reader: Reader, range: TimeRange): Promise<Slice[]> {
  const rows = await readPieces(source, reader, toPieces(range, source.interval))
  return rows.map((one) => toSlice(one, range))
}

/**
 * The first rows of a range, oldest first: at least `least` of them where there are so many. First the pieces are read
 * that hold them if no bucket is empty. Where that is not enough, and no kept piece goes on, one statement tells which
 * pieces have rows at all, so that however sparse a series is two more statements are enough.
 */
export async function readFirst(
  source: CountedSource,
  reader: Reader,
  range: TimeRange,
  least: number,
): Promise<Slice[]> {
  const rest = toPieces(range, source.interval)
  const slices: Slice[] = []
  let rows = 0
  const add = (read: readonly Rows[]) => {
    for (const one of read) {
      const slice = toSlice(one, range)
      rows += slice.end - slice.first
      slices.push(slice)
    }
  }
  add(await readPieces(source, reader, rest.splice(0, Math.ceil(least / PIECE_BUCKETS) + 1)))
  const shelf = reader.memory.shelf<Rows>()
  while (rows < least && rest.length > 0) {
    const kept = shelf.get(toPlace(source, rest[0] as Piece).key)
    if (kept === undefined) add(await readPieces(source, reader, await takeFilled(source, reader, rest, least - rows)))
    else {
      add([kept])
      rest.shift()
    }
  }
  return slices
}

/** Takes from the pieces those that hold the next `least` rows. That those before and between have none is kept. */
async function takeFilled(
  source: CountedSource,
  { memory, db }: Reader,
  rest: Piece[],
  least: number,
): Promise<readonly Piece[]> {
  const mark = memory.mark()
  const range = { from: rest[0]?.from ?? 0, to: rest.at(-1)?.to ?? 0 }
  const counts = await source.count(db, range, toPieceMs(source.interval))
  const taken: Piece[] = []
  for (let rows = 0; rows < least; ) {
    const piece = rest.shift()
    if (piece === undefined) break
    const count = counts.get(piece.piece) ?? 0
    if (count > 0) taken.push(piece)
    else memory.shelf<Rows>().keep(toPlace(source, piece), mark, NO_ROWS)
    rows += count
  }
  return taken
}

/** The newest time of what the slices are made of, in Unix milliseconds; null where they have no rows. */
export function findNewest(slices: readonly Slice[]): number | null {
  let newest: number | null = null
  for (const { rows, first, end } of slices) {
    for (let row = first; row < end; row++) newest = Math.max(newest ?? 0, rows.asOf(row))
  }
  return newest
}

export const countSlices = (slices: readonly Slice[]) => slices.reduce((sum, { first, end }) => sum + end - first, 0)

/** How many rows of slices, oldest first, are of a time or later. */
export const countSince = (slices: readonly Slice[], since: number): number =>
  slices.reduce((sum, { rows, first, end }) => {
    const late = toSlice(rows, { from: since, to: Number.POSITIVE_INFINITY })
    return sum + Math.max(0, end - Math.max(first, late.first))
  }, 0)

/** The first `most` rows of slices. */
export function cutSlices(slices: readonly Slice[], most: number): Slice[] {
  const left: Slice[] = []
  let rows = 0
  for (const slice of slices) {
    const end = Math.min(slice.end, slice.first + most - rows)
    left.push({ ...slice, end })
    rows += end - slice.first
  }
  return left
}
