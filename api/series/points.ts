import { hash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { INTERVAL_SECONDS, type Interval, MONDAY_SHIFT_MS, type TimeRange } from '../../shared/intervals.ts'
import type { Sized } from '../cache/cache.ts'
import {
  type AssembledBody,
  countBytes,
  deflateCached,
  inflate,
  type Part,
  type Rows,
  type Slice,
  toText,
  writeGzip,
  writeGzipBatches,
  writeText,
} from '../formats/formats.ts'
import { toTagValue } from '../http/negotiation.ts'
import type { Frame } from './series.ts'

/**
 * Buckets per block: a day has six blocks. A block is deflated alone, so a longer one is smaller per point, and an answer
 * that needs a part of it takes longer.
 */
const BLOCK_BUCKETS = 48

/**
 * The points of a chunk: the facts of each block that has points, oldest first; the lags of the points; the JSON of the
 * blocks. Everything is in one buffer, because objects and buffers for each block would take a tenth of the memory.
 */
export interface PointsChunk extends Sized {
  readonly bytes: Buffer
  readonly blocks: number
  /** Offset of the first block. */
  readonly texts: number
  /** Whether the lags and the blocks are deflated. */
  readonly isDeflated: boolean
}

export const NO_POINTS: PointsChunk = {
  bytes: Buffer.alloc(0),
  blocks: 0,
  texts: 0,
  isDeflated: true,
  size: 0,
  points: 0,
}

/** Offsets of the facts of a block. The last one is a bit for each bucket: whether it has a point. */
const AT = { from: 0, newest: 8, end: 16, length: 20, crc: 24, digest: 28, buckets: 44 } as const
const DIGEST_BYTES = AT.buckets - AT.digest
const LAG_BYTES = Float64Array.BYTES_PER_ELEMENT
const FACTS_BYTES = AT.buckets + BLOCK_BUCKETS / 8

/** A digest of 128 bits, like the rest of an entity tag. */
const toDigest = (text: Buffer) => hash('sha256', text, 'buffer').subarray(0, DIGEST_BYTES)

/** The form of the text of points. */
export interface PointsForm {
  readonly interval: Interval
  readonly order: 'asc' | 'desc'
  /** Whether each point has its own line, as in long answers. */
  readonly hasLines: boolean
  /** The first member of a point. No object in a point begins with it, so it marks the beginnings of points. */
  readonly firstMember: string
  /**
   * Reads the time of the observation of the point that ends at a position of a text. Without it the cached chunk has
   * these times in addition to the text.
   */
  readonly readAsOf?: (text: Buffer, end: number) => number
}

const toSeparator = ({ hasLines }: PointsForm) => (hasLines ? ',\n' : ',')

const toStepMs = (interval: Interval) => INTERVAL_SECONDS[interval] * 1000
/** The first bucket of the block that contains a time. All grids begin on the first Monday. */
function toBlockStart(at: number, interval: Interval): number {
  const length = BLOCK_BUCKETS * toStepMs(interval)
  return Math.floor((at - MONDAY_SHIFT_MS) / length) * length + MONDAY_SHIFT_MS
}

/**
 * Builds a deflated chunk from points as JSON rows, oldest first. A chunk takes about a millisecond of the only thread,
 * so other work runs between two chunks.
 */
export async function packPoints(slice: Slice, form: PointsForm): Promise<PointsChunk> {
  await setImmediate()
  return toChunk(slice, form, true)
}

/** Builds a chunk for one answer, which is not worth deflating. */
export const toPlainChunk = (slice: Slice, form: PointsForm): PointsChunk => toChunk(slice, form, false)

function toChunk({ rows, first, end }: Slice, form: PointsForm, isDeflated: boolean): PointsChunk {
  const { interval } = form
  const blocks: { from: number; first: number; end: number }[] = []
  for (let row = first; row < end; row++) {
    const from = toBlockStart(rows.at(row), interval)
    const last = blocks.at(-1)
    if (last?.from === from) last.end = row + 1
    else blocks.push({ from, first: row, end: row + 1 })
  }
  const texts = blocks.map((block) => toBlockText(rows, block, form))
  const toBytes = (text: Buffer) => (isDeflated ? deflateCached(text) : text)
  const stored = texts.map(toBytes)
  const facts = Buffer.alloc(FACTS_BYTES * blocks.length)
  const hasLags = form.readAsOf === undefined && first < end
  const lags = hasLags ? toBytes(toLags({ rows, first, end })) : Buffer.alloc(0)
  let until = facts.length + lags.length
  for (const [index, block] of blocks.entries()) {
    const [at, text] = [index * FACTS_BYTES, texts[index] as Buffer]
    until += (stored[index] as Buffer).length
    facts.writeDoubleLE(block.from, at + AT.from)
    facts.writeDoubleLE(rows.asOf(block.end - 1), at + AT.newest)
    facts.writeUInt32LE(until, at + AT.end)
    facts.writeUInt32LE(text.length, at + AT.length)
    if (isDeflated) facts.writeUInt32LE(crc32(text), at + AT.crc)
    toDigest(text).copy(facts, at + AT.digest)
    for (let row = block.first; row < block.end; row++) {
      const bucket = (rows.at(row) - block.from) / toStepMs(interval)
      const place = at + AT.buckets + (bucket >> 3)
      facts[place] = (facts[place] as number) | (1 << (bucket & 7))
    }
  }
  const bytes = Buffer.allocUnsafeSlow(until)
  let at = 0
  for (const part of [facts, lags, ...stored]) at += part.copy(bytes, at)
  const textsAt = facts.length + lags.length
  return { bytes, blocks: blocks.length, texts: textsAt, isDeflated, size: bytes.length, points: end - first }
}

/** The times from the beginnings of buckets to their observations: often the same for all, so that they deflate well. */
function toLags({ rows, first, end }: Slice): Buffer {
  const lags = Float64Array.from({ length: end - first }, (_, row) => rows.asOf(first + row) - rows.at(first + row))
  return Buffer.from(lags.buffer)
}

/** The rows of a block in their order; in `rows` a comma separates them. */
function toBlockText(
  { bytes, starts }: Rows,
  { first, end }: { first: number; end: number },
  form: PointsForm,
): Buffer {
  const toRow = (from: number, to: number) => bytes.subarray(starts[from], (starts[to] as number) - 1)
  if (!form.hasLines && form.order === 'asc') return toRow(first, end)
  const separator = Buffer.from(toSeparator(form))
  const parts: Buffer[] = []
  for (let row = first; row < end; row++) parts.push(toRow(row, row + 1))
  if (form.order === 'desc') parts.reverse()
  return Buffer.concat(parts.flatMap((part, index) => (index === 0 ? [part] : [separator, part])))
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

function lastBucket(part: BlockPart): number {
  let last = part.end - 1
  while (!hasPoint(part, last)) last--
  return last
}

function countPoints(part: BlockPart, first = part.first, end = part.end): number {
  let points = 0
  for (let bucket = first; bucket < end; bucket++) if (hasPoint(part, bucket)) points++
  return points
}

/** The blocks of chunks in a range, oldest first, without those that have no point there. */
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

/** The whole block of a part. */
function toBlock(part: BlockPart): Part {
  const { bytes, texts, isDeflated } = part.chunk
  const at = factsAt(part)
  const start = part.index === 0 ? texts : bytes.readUInt32LE(at - FACTS_BYTES + AT.end)
  const stored = bytes.subarray(start, bytes.readUInt32LE(at + AT.end))
  if (!isDeflated) return stored
  return { bytes: stored, crc: bytes.readUInt32LE(at + AT.crc), length: bytes.readUInt32LE(at + AT.length) }
}

/** The position of the point with a number in a text of points. */
function findPoint(text: Buffer, number: number, form: PointsForm): number {
  const beginning = toBeginning(form)
  let at = 0
  for (let point = 0; point < number; point++) at = text.indexOf(beginning, at) + beginning.length
  return number === 0 ? 0 : at - beginning.length + '}'.length + toSeparator(form).length
}

/** The end of a point and the beginning of the next. Quotes in a text of JSON are escaped. */
const toBeginning = (form: PointsForm) => Buffer.from(`}${toSeparator(form)}{"${form.firstMember}":`)

/** Whether the part has all points of its block. */
const isWhole = (part: BlockPart) =>
  nextBucket(part, 0) >= part.first && (part.end === BLOCK_BUCKETS || nextBucket(part, part.end) === BLOCK_BUCKETS)

/** The texts of parts: their blocks are inflated together, because each call of zlib takes as long as a block. */
function readTexts(parts: readonly BlockPart[], form: PointsForm): Map<BlockPart, Buffer> {
  const blocks = parts.map(toBlock)
  const all = toText(blocks)
  let start = 0
  return new Map(
    parts.map((part, index) => {
      const text = all.subarray(start, start + (blocks[index] as Part).length)
      start += text.length
      const [older, newer] = [countPoints(part, 0, part.first), countPoints(part, part.end, BLOCK_BUCKETS)]
      const [before, after] = form.order === 'asc' ? [older, newer] : [newer, older]
      const from = findPoint(text, before, form)
      if (after === 0) return [part, text.subarray(from)]
      const rest = text.subarray(from)
      return [part, rest.subarray(0, findPoint(rest, countPoints(part), form) - toSeparator(form).length)]
    }),
  )
}

/** The time of the observation of a part's newest point. */
function readNewest(part: BlockPart, form: PointsForm, read: (part: BlockPart) => Buffer): number {
  if (isWhole(part)) return part.chunk.bytes.readDoubleLE(factsAt(part) + AT.newest)
  if (form.readAsOf === undefined) return readStoredAsOf(part, form).at(-1) as number
  const text = read(part)
  const end = form.order === 'asc' ? text.length : text.indexOf(toBeginning(form)) + '}'.length
  return form.readAsOf(text, end === 0 ? text.length : end)
}

/** The times of the observations of a part, oldest first, from the lags of its chunk. */
function readStoredAsOf(part: BlockPart, { interval }: PointsForm): number[] {
  const { chunk } = part
  let before = countPoints(part, 0, part.first)
  for (let index = 0; index < part.index; index++) before += countPoints({ chunk, index, first: 0, end: BLOCK_BUCKETS })
  const most = chunk.blocks * BLOCK_BUCKETS * LAG_BYTES
  const stored = chunk.bytes.subarray(chunk.blocks * FACTS_BYTES, chunk.texts)
  const lags = chunk.isDeflated ? inflate([stored], most) : stored
  const times: number[] = []
  for (let bucket = part.first; bucket < part.end; bucket++) {
    if (!hasPoint(part, bucket)) continue
    const at = toFrom(part) + bucket * toStepMs(interval)
    times.push(at + lags.readDoubleLE((before + times.length) * LAG_BYTES))
  }
  return times
}

/** Points of one series, in the order of their form. A newer point has a newer observation. */
export interface Points {
  readonly count: number
  /** Time of the newest observation in Unix milliseconds; null without points. */
  readonly asOf: number | null
  /** Starts of the earliest and the latest bucket with a point, in Unix milliseconds; 0 without points. */
  readonly earliest: number
  readonly latest: number
  /** Number of points in buckets that start at this time or later. */
  countSince(at: number): number
  /** Times of the observations between two times, oldest first. */
  readAsOf(range: TimeRange): number[]
  /** The first `most` points. */
  head(most: number): Points
  /** The JSON of each point. */
  toRecords(): Buffer[]
  /** The points as a JSON array in a frame. */
  toBody(frame: Frame): AssembledBody
}

/** Longer texts are sent in several writes. */
const MOST_WHOLE_BYTES = 1_250_000

/** The points in a range of buckets, from the chunks that contain it, which are given oldest first. */
export const toPoints = (chunks: readonly PointsChunk[], range: TimeRange, form: PointsForm): Points =>
  createPoints(selectParts(chunks, range, form.interval), form)

/** `parts` are ordered by time, oldest first. */
function createPoints(parts: readonly BlockPart[], form: PointsForm): Points {
  const step = toStepMs(form.interval)
  const [oldest, newest] = [parts[0], parts.at(-1)]
  const ordered = form.order === 'asc' ? parts : [...parts].reverse()
  const toTime = (part: BlockPart, bucket: number) => toFrom(part) + bucket * step
  let edges: Map<BlockPart, Buffer> | undefined
  /** The text of a part. Blocks of which only a part is used are inflated once. */
  const read = (part: BlockPart): Buffer => {
    edges ??= readTexts(
      parts.filter((one) => !isWhole(one)),
      form,
    )
    return edges.get(part) ?? (readTexts([part], form).get(part) as Buffer)
  }
  return {
    count: parts.reduce((sum, part) => sum + countPoints(part), 0),
    get asOf() {
      return newest === undefined ? null : readNewest(newest, form, read)
    },
    earliest: oldest === undefined ? 0 : toTime(oldest, nextBucket(oldest, oldest.first)),
    latest: newest === undefined ? 0 : toTime(newest, lastBucket(newest)),
    countSince: (at) =>
      parts.reduce((sum, part) => {
        const bucket = Math.ceil((at - toFrom(part)) / step)
        return sum + countPoints(part, Math.max(part.first, bucket))
      }, 0),
    readAsOf: ({ from, to }) => {
      const concerned = parts.filter((part) => toFrom(part) < to && toTime(part, BLOCK_BUCKETS) > from)
      return concerned.flatMap((part) => readAllAsOf(part, form, read).filter((at) => at >= from && at < to))
    },
    head: (most) => createPoints(cutParts(parts, most, form), form),
    toRecords: () => [...readTexts(ordered, form).values()].flatMap((text) => splitPoints(text, form)),
    toBody: (frame) => assemble(ordered, { frame, form }, read),
  }
}

/** The JSON of each point in a text of points. */
function splitPoints(text: Buffer, form: PointsForm): Buffer[] {
  const [beginning, points] = [toBeginning(form), [] as Buffer[]]
  for (let at = 0; at < text.length; ) {
    const next = text.indexOf(beginning, at)
    const end = next === -1 ? text.length : next + '}'.length
    points.push(text.subarray(at, end))
    at = end + toSeparator(form).length
  }
  return points
}

/** The times of all observations of a part, oldest first. */
function readAllAsOf(part: BlockPart, form: PointsForm, read: (part: BlockPart) => Buffer): number[] {
  const { readAsOf } = form
  if (readAsOf === undefined) return readStoredAsOf(part, form)
  const times = splitPoints(read(part), form).map((point) => readAsOf(point, point.length))
  return form.order === 'asc' ? times : times.reverse()
}

/** The parts with the first `most` points in the order of the form. */
function cutParts(parts: readonly BlockPart[], most: number, { order }: PointsForm): BlockPart[] {
  const taken: BlockPart[] = []
  let left = most
  for (const part of order === 'asc' ? parts : [...parts].reverse()) {
    if (left === 0) break
    let { first, end } = part
    if (order === 'asc') for (end = first; end < part.end && left > 0; end++) left -= Number(hasPoint(part, end))
    else for (first = end; first > part.first && left > 0; first--) left -= Number(hasPoint(part, first - 1))
    taken.push({ ...part, first, end })
  }
  return order === 'asc' ? taken : taken.reverse()
}

/** Whole blocks are used as they are stored; of the others the text is used. */
function assemble(
  parts: readonly BlockPart[],
  { frame, form }: { readonly frame: Frame; readonly form: PointsForm },
  read: (part: BlockPart) => Buffer,
): AssembledBody {
  const [opening, closing] = form.hasLines ? ['[\n', '\n]\n'] : ['[', ']']
  const comma = Buffer.from(toSeparator(form))
  const [before, after] = [Buffer.from(frame.before + opening), Buffer.from(closing + frame.after)]
  const body: Part[] = [before]
  const digests: Buffer[] = [before, after]
  for (const [index, part] of parts.entries()) {
    if (index > 0) body.push(comma)
    if (isWhole(part)) {
      const at = factsAt(part) + AT.digest
      body.push(toBlock(part))
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
    toGzip: (isCached) => Buffer.concat([...writeGzip(body, isCached)]),
    write: (encoding) => (encoding === 'gzip' ? writeGzipBatches(body) : writeText(body)),
  }
}
