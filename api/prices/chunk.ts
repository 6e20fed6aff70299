import { hash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { INTERVAL_SECONDS, type Interval, type TimeRange, toBucketStart } from '../../shared/intervals.ts'
import type { AssembledBody } from '../answers/answer.ts'
import {
  countBytes,
  type Deflated,
  deflateCached,
  inflate,
  type Part,
  store,
  toText,
  writeGzip,
  writeGzipPieces,
  writeText,
} from '../answers/deflated.ts'
import type { Rows, Slice } from '../answers/rows.ts'
import type { Sized } from '../cache/chunks.ts'
import { toTagValue } from '../http/negotiation.ts'
import type { StoredPoints } from '../route/stored-points.ts'
import type { CountedSource, Series } from '../series/chunks.ts'
import type { Frame } from '../series/series.ts'
import { countPointsByChunk, writePoints } from './points.ts'
import { isShort } from './stored-points.ts'

/**
 * Buckets per block: a day has six blocks. A block is deflated alone, so a longer one is smaller per point, and an answer
 * that needs a part of it takes longer.
 */
const BLOCK_BUCKETS = 48

/**
 * The points of a chunk: the facts of each block that has points, one after the other, then the deflated JSON of the
 * blocks. Everything is in one buffer, because objects and buffers for each block would take a tenth of the memory.
 */
export interface PointsChunk extends Sized {
  readonly bytes: Buffer
  readonly blocks: number
}

const NO_POINTS: PointsChunk = { bytes: Buffer.alloc(0), blocks: 0, size: 0 }

/** Offsets of the facts of a block. The last one is a bit for each bucket: whether it has a point. */
const AT = { from: 0, newest: 8, end: 16, length: 20, crc: 24, digest: 28, buckets: 44 } as const
const DIGEST_BYTES = AT.buckets - AT.digest
const FACTS_BYTES = AT.buckets + BLOCK_BUCKETS / 8

/** A digest of 128 bits, like the rest of an entity tag. */
const toDigest = (text: Buffer) => hash('sha256', text, 'buffer').subarray(0, DIGEST_BYTES)

/** The form of the text of points: their interval, and whether each point has its own line, as in long answers. */
export interface PointsForm {
  readonly interval: Interval
  readonly hasLines: boolean
}

const toSeparator = ({ hasLines }: PointsForm) => (hasLines ? ',\n' : ',')

const toStepMs = (interval: Interval) => INTERVAL_SECONDS[interval] * 1000
/** The first bucket of the block that contains a time. Blocks are counted from 1970; weeks begin on Mondays. */
function toBlockStart(at: number, interval: Interval): number {
  const [step, length] = [toStepMs(interval), BLOCK_BUCKETS * toStepMs(interval)]
  return toBucketStart(Math.floor(at / length) * length - 1, interval) + step
}

/**
 * Builds a chunk from points as JSON rows, oldest first. This takes about a millisecond of the only thread, so other work
 * runs between two chunks.
 */
export async function packPoints({ rows, first, end }: Slice, form: PointsForm): Promise<PointsChunk> {
  await setImmediate()
  const { interval } = form
  const blocks: { from: number; first: number; end: number }[] = []
  for (let row = first; row < end; row++) {
    const from = toBlockStart(rows.at(row), interval)
    const last = blocks.at(-1)
    if (last?.from === from) last.end = row + 1
    else blocks.push({ from, first: row, end: row + 1 })
  }
  const texts = blocks.map((block) => toBlockText(rows, block, form))
  const deflated = texts.map(deflateCached)
  const facts = Buffer.alloc(FACTS_BYTES * blocks.length)
  let until = facts.length
  for (const [index, block] of blocks.entries()) {
    const [at, text] = [index * FACTS_BYTES, texts[index] as Buffer]
    until += (deflated[index] as Buffer).length
    facts.writeDoubleLE(block.from, at + AT.from)
    facts.writeDoubleLE(rows.asOf(block.end - 1), at + AT.newest)
    facts.writeUInt32LE(until, at + AT.end)
    facts.writeUInt32LE(text.length, at + AT.length)
    facts.writeUInt32LE(crc32(text), at + AT.crc)
    toDigest(text).copy(facts, at + AT.digest)
    for (let row = block.first; row < block.end; row++) {
      const bucket = (rows.at(row) - block.from) / toStepMs(interval)
      const place = at + AT.buckets + (bucket >> 3)
      facts[place] = (facts[place] as number) | (1 << (bucket & 7))
    }
  }
  const bytes = Buffer.allocUnsafeSlow(until)
  let at = 0
  for (const part of [facts, ...deflated]) at += part.copy(bytes, at)
  return { bytes, blocks: blocks.length, size: bytes.length }
}

/** The rows of a block; in `rows` a comma separates them. */
function toBlockText(
  { bytes, starts }: Rows,
  { first, end }: { first: number; end: number },
  form: PointsForm,
): Buffer {
  const toRow = (from: number, to: number) => bytes.subarray(starts[from], (starts[to] as number) - 1)
  if (!form.hasLines) return toRow(first, end)
  const separator = Buffer.from(toSeparator(form))
  const parts: Buffer[] = []
  for (let row = first; row < end; row++) parts.push(toRow(row, row + 1), separator)
  return Buffer.concat(parts.slice(0, -1))
}

/** A block, or the part of it with the buckets from `first` to `end`, exclusive. */
interface BlockPart {
  readonly chunk: PointsChunk
  readonly index: number
  readonly first: number
  readonly end: number
}

const factsAt = ({ index }: BlockPart) => index * FACTS_BYTES
const hasPoint = (part: BlockPart, bucket: number) =>
  ((part.chunk.bytes[factsAt(part) + AT.buckets + (bucket >> 3)] as number) & (1 << (bucket & 7))) !== 0
const toFrom = (part: BlockPart) => part.chunk.bytes.readDoubleLE(factsAt(part) + AT.from)

/** The first bucket with a point from a bucket on, up to the end of the block. */
function nextBucket(part: BlockPart, bucket: number): number {
  let next = bucket
  while (next < BLOCK_BUCKETS && !hasPoint(part, next)) next++
  return next
}

function countPoints(part: BlockPart, first = part.first): number {
  let points = 0
  for (let bucket = first; bucket < part.end; bucket++) if (hasPoint(part, bucket)) points++
  return points
}

/** The blocks of chunks in a range, without those that have no point there. */
function selectParts(chunks: readonly PointsChunk[], { from, to }: TimeRange, interval: Interval): BlockPart[] {
  const step = toStepMs(interval)
  const parts: BlockPart[] = []
  for (const chunk of chunks) {
    for (let index = 0; index < chunk.blocks; index++) {
      const start = chunk.bytes.readDoubleLE(index * FACTS_BYTES)
      const toBucket = (time: number) => Math.min(BLOCK_BUCKETS, Math.max(0, Math.ceil((time - start) / step)))
      const part = { chunk, index, first: toBucket(from), end: toBucket(to) }
      if (nextBucket(part, part.first) < part.end) parts.push(part)
    }
  }
  return parts
}

function toDeflated(part: BlockPart): Deflated {
  const { bytes, blocks } = part.chunk
  const at = factsAt(part)
  const start = part.index === 0 ? blocks * FACTS_BYTES : bytes.readUInt32LE(at - FACTS_BYTES + AT.end)
  return {
    bytes: bytes.subarray(start, bytes.readUInt32LE(at + AT.end)),
    crc: bytes.readUInt32LE(at + AT.crc),
    length: bytes.readUInt32LE(at + AT.length),
  }
}

/** The position of a bucket's point in the text of its block. */
const findPoint = (text: Buffer, at: number) =>
  text.indexOf(`{"timestamp":"${new Date(at).toISOString()}"`, 0, 'latin1')

/** Whether the part has all points of its block. */
const isWhole = (part: BlockPart) =>
  nextBucket(part, 0) >= part.first && (part.end === BLOCK_BUCKETS || nextBucket(part, part.end) === BLOCK_BUCKETS)

/** The texts of parts: their blocks are inflated together, because each call of zlib takes as long as a block. */
function readTexts(parts: readonly BlockPart[], form: PointsForm): Map<BlockPart, Buffer> {
  const [step, separator] = [toStepMs(form.interval), toSeparator(form)]
  const blocks = parts.map(toDeflated)
  const all = inflate(
    blocks.map(({ bytes }) => bytes),
    countBytes(blocks),
  )
  let start = 0
  return new Map(
    parts.map((part, index) => {
      const text = all.subarray(start, start + (blocks[index] as Deflated).length)
      start += text.length
      const toPlace = (bucket: number) => findPoint(text, toFrom(part) + bucket * step)
      const [first, next] = [nextBucket(part, part.first), nextBucket(part, part.end)]
      const end = next === BLOCK_BUCKETS ? text.length : toPlace(next) - separator.length
      return [part, text.subarray(toPlace(first), end)]
    }),
  )
}

/** Offset of the time of the observation from the end of a point: it is the last member, and its width is fixed. */
const TIME_WIDTH = '2026-01-01T00:00:00.000Z'.length
const OBSERVED_FROM_END = '"}}}'.length + TIME_WIDTH

/** The time of the observation of the point that ends at a position. */
const readObserved = (text: Buffer, end: number) =>
  Date.parse(text.toString('latin1', end - OBSERVED_FROM_END, end - OBSERVED_FROM_END + TIME_WIDTH))

/** Points of one series, oldest first. */
export interface Points {
  readonly count: number
  /** Time of the newest observation in Unix milliseconds; null without points. */
  readonly asOf: number | null
  /** Number of points in buckets that start at this time or later. */
  countSince(at: number): number
  /** Times of the observations between two times, in order. */
  readObserved(range: TimeRange): number[]
  /** The first `most` points. */
  head(most: number): Points
  /** The points as a JSON array in a frame. */
  toBody(frame: Frame): AssembledBody
}

/** Longer texts are sent in several writes. */
const MOST_WHOLE_BYTES = 1_250_000

function toStored(text: string): Deflated {
  const bytes = Buffer.from(text)
  return { bytes: store(bytes), crc: crc32(bytes), length: bytes.length }
}
const [COMMA, COMMA_LINE] = [toStored(','), toStored(',\n')]

/** The points in a range of buckets, from the chunks that contain it. */
export const toPoints = (chunks: readonly PointsChunk[], range: TimeRange, form: PointsForm): Points =>
  createPoints(selectParts(chunks, range, form.interval), form)

function createPoints(parts: readonly BlockPart[], form: PointsForm): Points {
  const step = toStepMs(form.interval)
  let edges: Map<BlockPart, Buffer> | undefined
  /** The text of a part. Blocks of which only a part is used are inflated once. */
  const read = (part: BlockPart): Buffer => {
    edges ??= readTexts(
      parts.filter((one) => !isWhole(one)),
      form,
    )
    return edges.get(part) ?? (readTexts([part], form).get(part) as Buffer)
  }
  const readNewest = () => {
    const part = parts.at(-1)
    if (part === undefined) return null
    return isWhole(part)
      ? part.chunk.bytes.readDoubleLE(factsAt(part) + AT.newest)
      : readObserved(read(part), read(part).length)
  }
  return {
    count: parts.reduce((sum, part) => sum + countPoints(part), 0),
    get asOf() {
      return readNewest()
    },
    countSince: (at) =>
      parts.reduce((sum, part) => {
        const bucket = Math.ceil((at - toFrom(part)) / step)
        return sum + countPoints(part, Math.max(part.first, bucket))
      }, 0),
    readObserved: ({ from, to }) => {
      const concerned = parts.filter((part) => toFrom(part) < to && toFrom(part) + BLOCK_BUCKETS * step > from)
      return concerned.flatMap((part) => readAllObserved(read(part), form).filter((at) => at >= from && at < to))
    },
    head: (most) => createPoints(cutParts(parts, most), form),
    toBody: (frame) => assemble(parts, { frame, form }, read),
  }
}

/** The times of all observations in the text of points. */
function readAllObserved(text: Buffer, form: PointsForm): number[] {
  const times: number[] = []
  const separator = toSeparator(form)
  for (let at = 0; at < text.length; ) {
    const next = text.indexOf(`${separator}{"timestamp":"`, at, 'latin1')
    const end = next === -1 ? text.length : next
    times.push(readObserved(text, end))
    at = end + separator.length
  }
  return times
}

function cutParts(parts: readonly BlockPart[], most: number): BlockPart[] {
  const taken: BlockPart[] = []
  let left = most
  for (const part of parts) {
    if (left === 0) break
    let end = part.first
    for (; end < part.end && left > 0; end++) if (hasPoint(part, end)) left--
    taken.push({ ...part, end: left > 0 ? part.end : end })
  }
  return taken
}

/** Whole blocks are used as they are deflated; of the others the text is used. */
function assemble(
  parts: readonly BlockPart[],
  { frame, form }: { readonly frame: Frame; readonly form: PointsForm },
  read: (part: BlockPart) => Buffer,
): AssembledBody {
  const [opening, closing, separator] = form.hasLines ? ['[\n', '\n]\n', COMMA_LINE] : ['[', ']', COMMA]
  const [before, after] = [Buffer.from(frame.before + opening), Buffer.from(closing + frame.after)]
  const body: Part[] = [before]
  const digests: Buffer[] = [before, after]
  for (const [index, part] of parts.entries()) {
    if (index > 0) body.push(separator)
    if (isWhole(part)) {
      const at = factsAt(part) + AT.digest
      body.push(toDeflated(part))
      digests.push(part.chunk.bytes.subarray(at, at + DIGEST_BYTES))
    } else {
      const text = read(part)
      body.push(text)
      digests.push(toDigest(text))
    }
  }
  body.push(after)
  const length = countBytes(body)
  return {
    length,
    size: body.reduce((sum, part) => sum + (Buffer.isBuffer(part) ? part : part.bytes).length, 0),
    tag: toTagValue(Buffer.concat(digests)),
    isLong: length > MOST_WHOLE_BYTES,
    toText: () => toText(body),
    toGzip: () => Buffer.concat([...writeGzip(body)]),
    write: (encoding) => (encoding === 'gzip' ? writeGzipPieces(body) : writeText(body)),
  }
}

/** The series of a token, by its key in ClickHouse. */
const toPriceSeries = (token: number, { interval, hasLines }: PointsForm): Series => ({
  key: `${tokenPrices.name} ${token}${hasLines ? ' lines' : ''}`,
  dataset: tokenPrices.name,
  interval,
})

/** The series with its read functions. */
export const toPriceSource = (read: StoredPoints, token: number, form: PointsForm): CountedSource<PointsChunk> => ({
  ...toPriceSeries(token, form),
  read: (db, range, abandoned) =>
    isShort(range, form.interval)
      ? read[form.interval]({ token, ...range }, abandoned)
      : writePoints(db, { token, interval: form.interval, ...range }),
  count: (db, range, chunkMs) => countPointsByChunk(db, form.interval, { token, ...range, length: chunkMs / 1000 }),
  pack: (slice) => packPoints(slice, form),
  countIn: (chunk, range) => toPoints([chunk], range, form).count,
  empty: NO_POINTS,
})
