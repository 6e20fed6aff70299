import { constants, crc32, deflateRawSync, inflateRawSync } from 'node:zlib'

/**
 * Answers in gzip that are assembled from deflated blocks without compressing them again. A raw deflate stream that
 * ends with a sync flush (RFC 1951, an empty stored block) ends on a byte boundary and does not end the stream, so such
 * streams can be concatenated if none refers to bytes before its start. Texts between them become stored blocks.
 * The trailer of gzip (RFC 1952) needs the CRC-32 of the text: those of the parts are combined.
 */
interface Deflated {
  /** A raw deflate stream that ends with a sync flush. */
  readonly bytes: Buffer
  /** CRC-32 and length of its text. */
  readonly crc: number
  readonly length: number
}

const SYNC = { finishFlush: constants.Z_SYNC_FLUSH }
/**
 * Blocks are deflated once and served often. A block is shorter than this window. Level 9 saves 2 % in twice the time.
 */
const CACHED = { ...SYNC, level: 5, windowBits: 14 }
/** A text for one answer, and bytes that are inflated before they are used. */
const PASSING = { ...SYNC, level: 1 }

/** Deflates a text that is cached. Deflating in the thread pool would take twice as much processor time. */
export const deflateCached = (text: Buffer): Buffer => deflateRawSync(text, CACHED)

/** Deflates bytes in a third of the time of `deflateCached`, to a few percent more. */
export const deflateQuickly = (bytes: Buffer): Buffer => deflateRawSync(bytes, PASSING)

const MAX_STORED_BYTES = 0xffff

/** The header of a stored block of up to `MAX_STORED_BYTES` bytes, which follow it. */
function toStoredHeader(length: number): Buffer {
  const header = Buffer.allocUnsafe(5)
  header[0] = 0
  header.writeUInt16LE(length, 1)
  header.writeUInt16LE(~length & MAX_STORED_BYTES, 3)
  return header
}

/** Returns a text as stored blocks. */
function store(text: Buffer): Buffer {
  const blocks: Buffer[] = []
  for (let at = 0; at < text.length; at += MAX_STORED_BYTES) {
    const part = text.subarray(at, at + MAX_STORED_BYTES)
    blocks.push(toStoredHeader(part.length), part)
  }
  return Buffer.concat(blocks)
}

/** The end of a deflate stream: an empty stored block that is the last one. */
const END = Buffer.from([1, 0, 0, 0xff, 0xff])

/** Inflates deflate streams to their text of `length` bytes. */
export const inflate = (parts: readonly Buffer[], length: number): Buffer =>
  // The output has one byte more than the text, because zlib requests another buffer when one is full.
  inflateRawSync(Buffer.concat([...parts, END]), { chunkSize: Math.max(64, length + 1) })

/** A part of an answer: deflated before, or a text. */
export type Part = Deflated | Buffer

const isText = (part: Part): part is Buffer => Buffer.isBuffer(part)

/** Length of the parts' text. */
export const countBytes = (parts: readonly Part[]): number => parts.reduce((sum, { length }) => sum + length, 0)

/** The text of the parts. */
export const toText = (parts: readonly Part[]): Buffer =>
  parts.every(isText)
    ? Buffer.concat(parts)
    : inflate(
        parts.map((part) => (isText(part) ? store(part) : part.bytes)),
        countBytes(parts),
      )

/**
 * Shorter texts are stored. In an answer that is not cached, these are the parts of blocks at the edges of its range:
 * deflating them takes longer than sending them, and a TCP connection may send them before the first acknowledgement (RFC
 * 6928). A cached answer is sent many times.
 */
const MIN_DEFLATED_BYTES = { cached: 400, uncached: 12 * 1024 }
/** No extra fields, no time, an unknown operating system. */
const GZIP_HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff])

/** Adjacent texts as one stored block, or deflated together if they are long. */
function toDeflate(texts: readonly Buffer[], isCached: boolean): Buffer[] {
  const length = countBytes(texts)
  if (length === 0) return []
  return length < MIN_DEFLATED_BYTES[isCached ? 'cached' : 'uncached']
    ? [toStoredHeader(length), ...texts]
    : [deflateQuickly(Buffer.concat(texts))]
}

/** The text of the parts in gzip, part by part. Deflates only long texts among them, and in a cached answer short ones. */
export function* writeGzip(parts: readonly Part[], isCached = false): Generator<Buffer> {
  yield GZIP_HEADER
  let [crc, length] = [0, 0]
  let texts: Buffer[] = []
  for (const part of parts) {
    length += part.length
    if (isText(part)) {
      crc = crc32(part, crc)
      texts.push(part)
    } else {
      crc = combineCrc(crc, part.crc, part.length)
      yield* toDeflate(texts, isCached)
      texts = []
      yield part.bytes
    }
  }
  yield* toDeflate(texts, isCached)
  const trailer = Buffer.alloc(8)
  trailer.writeUInt32LE(crc, 0)
  trailer.writeUInt32LE(length % 2 ** 32, 4)
  yield END
  yield trailer
}

/** Bytes of text per write: enough that the calls of zlib do not count. */
const BATCH_BYTES = 64 * 1024

/** The text of the parts in gzip, in batches that are large enough for a write to a socket. */
export function* writeGzipBatches(parts: readonly Part[]): Generator<Buffer> {
  let [batch, length]: [Buffer[], number] = [[], 0]
  for (const bytes of writeGzip(parts)) {
    batch.push(bytes)
    length += bytes.length
    if (length < BATCH_BYTES) continue
    yield Buffer.concat(batch)
    batch = []
    length = 0
  }
  yield Buffer.concat(batch)
}

/** The text of the parts, in batches of at least `BATCH_BYTES` except the last. */
export function* writeText(parts: readonly Part[]): Generator<Buffer> {
  let batch: Part[] = []
  for (const part of parts) {
    batch.push(part)
    if (countBytes(batch) < BATCH_BYTES) continue
    yield toText(batch)
    batch = []
  }
  yield toText(batch)
}

/**
 * CRC-32 treats bytes as a polynomial modulo `POLYNOMIAL`, with the highest power in the lowest bit. The CRC of two
 * texts one after the other is the CRC of the first times x^(8 * length of the second), plus the CRC of the second.
 */
const POLYNOMIAL = 0xedb88320
const ONE = 0x8000_0000

/** The product of two polynomials. */
function multiply(one: number, other: number): number {
  let [product, shifted] = [0, other]
  for (let left = one; left !== 0; left <<= 1) {
    if (left < 0) product ^= shifted
    shifted = shifted & 1 ? (shifted >>> 1) ^ POLYNOMIAL : shifted >>> 1
  }
  return product
}

/** x^(8 * 2^n) for each n: every power is the square of the one before. */
const POWERS = new Int32Array(32)
for (let n = 0, power = ONE >>> 8; n < POWERS.length; n++, power = multiply(power, power)) POWERS[n] = power

/** Returns the CRC-32 of a text, from those of its beginning and of its rest of `length` bytes. */
export function combineCrc(beginning: number, rest: number, length: number): number {
  let crc = beginning | 0
  for (let left = length, n = 0; left > 0; left = Math.floor(left / 2), n++)
    if (left % 2 === 1) crc = multiply(POWERS[n] as number, crc)
  return (crc ^ rest) >>> 0
}
