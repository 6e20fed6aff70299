import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { type Interval, toBucketStart } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Fragment } from '../answers/fragments.ts'
import { createRowCutter, readRows } from '../answers/json-rows.ts'
import { withSignal } from '../answers/leaving.ts'
import { JSON_SETTINGS } from '../answers/written-json.ts'
import type { Surroundings } from '../route/define.ts'
import { type ChunkSummary, type Piece, readParts, type Stretch, summarize, toChunkSpan, toPieces } from './chunks.ts'
import { pointsSql } from './points.ts'

interface Wanted extends Stretch {
  readonly token: number
  readonly interval: Interval
  /** Most points; undefined takes all. */
  readonly limit: number | undefined
}

interface LongSeries {
  readonly points: number
  readonly asOf: number | null
  /** Differs whenever the data does. */
  readonly digest: string
  /** The points as a JSON array, a point a line. Rejects when the query fails at once. */
  open(signal: AbortSignal): Promise<Readable>
  /** Asked when the last byte was read: whether the bytes are those of the digest. */
  holds(signal: AbortSignal): Promise<boolean>
}

/** A piece that has points, with its bytes where they are at hand. */
interface Part extends Piece {
  readonly summary: ChunkSummary
  readonly fragment: Fragment | undefined
}

/** Neighbours that are read in one stream. */
type Run = readonly [Part, ...Part[]]

type Reader = (run: Run) => Promise<AsyncIterable<Buffer>>

/** JSON of a point, about; it only decides whether chunks are kept. */
const POINT_BYTES = 220

/**
 * The points of a long series: chunks whose buckets have ended come from kept bytes where they can, the rest is read in
 * one stream and kept on its way. What is read may change between the summary, which the entity tag is made of, and the
 * stream; ClickHouse has no snapshot that spans both. The table's parts tell that it did not, in a fraction of the time;
 * where they differ, as after a merge, the summary is made again.
 */
export async function readLongSeries(
  { db, fragments, now }: Pick<Surroundings, 'db' | 'fragments' | 'now'>,
  wanted: Wanted,
): Promise<LongSeries> {
  const { token, interval, limit } = wanted
  const mark = fragments.mark()
  const ended = toBucketStart(now(), interval)
  const keyOf = ({ chunk }: Piece) => `${tokenPrices.name} ${token} ${interval} ${chunk}`
  const isClosed = (piece: Piece) => limit === undefined && piece.isWhole && piece.to <= ended

  const pieces = toPieces(wanted, interval)
  const fragmentOf = new Map(pieces.map((piece) => [piece, isClosed(piece) ? fragments.get(keyOf(piece)) : undefined]))
  const missing = pieces.filter((piece) => fragmentOf.get(piece) === undefined)
  const stretch = { token, limit, from: missing[0]?.from ?? 0, to: missing.at(-1)?.to ?? 0 }
  const read = missing.length === 0 ? undefined : await summarize(db, interval, stretch)

  const parts = pieces.flatMap((piece): Part[] => {
    const fragment = fragmentOf.get(piece)
    const summary = fragment ?? read?.chunks.get(piece.chunk)
    return summary === undefined ? [] : [{ ...piece, summary, fragment }]
  })
  const points = countPoints(parts)
  const fresh = new Map<Part, Buffer>()

  return {
    points,
    asOf: parts.at(-1)?.summary.asOf ?? null,
    digest: toDigest(parts),
    open: async (signal) => {
      const read: Reader = (run) =>
        db.stream({
          name: 'historic-financial-stream',
          sql: pointsSql(interval).rows,
          params: { token, from: run[0].from, to: run.at(-1)?.to, limit: countPoints(run) },
          settings: { ...JSON_SETTINGS, output_format_json_array_of_rows: 1 },
          signal,
          isLong: true,
        })
      const runs = toRuns(parts)
      // A query that fails at once must be heard of before the first byte is sent.
      const [first] = runs
      const opened = first === undefined ? undefined : await read(first)
      const reader: Reader = async (run) => (run === first && opened !== undefined ? opened : read(run))
      const isKept = fragments.claim(points * POINT_BYTES, signal)
      const rows = writeRows(runs, parts, reader, isKept ? fresh : undefined)
      return Readable.from(rows, { objectMode: false })
    },
    holds: async (signal) => {
      if (read !== undefined && !(await isUnchanged(withSignal(db, signal)))) return false
      for (const [part, bytes] of fresh) {
        if (!isClosed(part)) continue
        const span = toChunkSpan(part.chunk, interval)
        fragments.keep(keyOf(part), tokenPrices.name, span, mark, { ...part.summary, bytes })
      }
      fresh.clear()
      return true
    },
  }

  async function isUnchanged(bound: Database): Promise<boolean> {
    if ((await readParts(bound, interval, stretch)) === read?.parts) return true
    const again = await summarize(bound, interval, stretch)
    return missing.every(({ chunk }) => again.chunks.get(chunk)?.digest === read?.chunks.get(chunk)?.digest)
  }
}

const countPoints = (parts: readonly Part[]) => parts.reduce((sum, { summary }) => sum + summary.points, 0)

function toDigest(parts: readonly Part[]): string {
  const hash = createHash('sha256')
  for (const { chunk, summary } of parts) hash.update(`${chunk} ${summary.points} ${summary.asOf} ${summary.digest};`)
  return hash.digest('base64url')
}

/** Neighbours without bytes, together. */
function toRuns(parts: readonly Part[]): Run[] {
  const runs: [Part, ...Part[]][] = []
  let isOpen = false
  for (const part of parts) {
    const run = runs.at(-1)
    if (part.fragment !== undefined) isOpen = false
    else if (isOpen && run !== undefined) run.push(part)
    else {
      runs.push([part])
      isOpen = true
    }
  }
  return runs
}

/** The array in the order of its parts; bytes of the runs that are read go to `fresh` as well. */
async function* writeRows(
  runs: readonly Run[],
  parts: readonly Part[],
  reader: Reader,
  fresh: Map<Part, Buffer> | undefined,
): AsyncGenerator<Buffer> {
  const runOf = new Map(runs.map((run) => [run[0], run]))
  let before = Buffer.from('[\n')
  for (const part of parts) {
    if (part.fragment !== undefined) {
      yield before
      yield part.fragment.bytes
    }
    const run = runOf.get(part)
    if (run !== undefined) {
      const cutter = fresh && createRowCutter(run.map(({ summary }) => summary.points))
      for await (const bytes of readRows(await reader(run))) {
        cutter?.push(bytes)
        if (before.length > 0) yield before
        before = Buffer.alloc(0)
        yield bytes
      }
      for (const [index, bytes] of (cutter?.end() ?? []).entries()) {
        const of = run[index]
        if (of !== undefined) fresh?.set(of, bytes)
      }
    }
    if (part.fragment !== undefined || run !== undefined) before = Buffer.from(',\n')
  }
  yield parts.length === 0 ? Buffer.from('[\n\n]\n') : Buffer.from('\n]\n')
}
