import { crc32, inflateSync } from 'node:zlib'
import { DataError } from '../../shared/errors.ts'

export type ImageType = 'png' | 'jpg' | 'webp'

/** Type and size in pixels of an image. */
export interface ImageFacts {
  readonly type: ImageType
  readonly width: number
  readonly height: number
}

export const MOST_BYTES = 64 * 1024
/** Pixels of an edge. An image in this range takes at most 1 MB decoded. */
const [LEAST_EDGE, MOST_EDGE] = [16, 512]
/** Logos are round or square; a page cuts other images. */
const MOST_RATIO = 2

const malformed = (reason: string) => new DataError('provider_malformed', reason)

const PNG_SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
const PNG_CHANNELS: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }
/** An interlaced image has at most this many times the filter bytes of its rows. */
const MOST_PASSES = 7

/** Checks the chunks with their checksums, and that the pixels fill exactly the declared size. */
function readPng(bytes: Buffer): ImageFacts {
  const parts: Buffer[] = []
  let header: Buffer | undefined
  let at = PNG_SIGNATURE.length
  for (;;) {
    if (at + 12 > bytes.length) throw malformed('the PNG is truncated')
    const end = at + 12 + bytes.readUInt32BE(at)
    if (end > bytes.length) throw malformed('the PNG is truncated')
    const type = bytes.toString('latin1', at + 4, at + 8)
    if (crc32(bytes.subarray(at + 4, end - 4)) !== bytes.readUInt32BE(end - 4))
      throw malformed(`the checksum of ${type} in the PNG is wrong`)
    const data = bytes.subarray(at + 8, end - 4)
    if (header === undefined && (type !== 'IHDR' || data.length !== 13)) throw malformed('the PNG has no header')
    header ??= data
    if (type === 'acTL') throw malformed('the PNG is animated')
    if (type === 'IDAT') parts.push(data)
    at = end
    if (type === 'IEND') break
  }
  if (at !== bytes.length) throw malformed('the PNG has bytes after its end')
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)]
  const facts = checkEdges({ type: 'png', width, height })
  const bits = (header[8] ?? 0) * (PNG_CHANNELS[header[9] ?? -1] ?? 0)
  const [least, passes] = [height * (1 + Math.ceil((width * bits) / 8)), header[12] === 0 ? 1 : MOST_PASSES]
  let size: number
  try {
    size = inflateSync(Buffer.concat(parts), { maxOutputLength: least + passes * (width + height) }).length
  } catch (cause) {
    throw new DataError('provider_malformed', 'the pixels of the PNG cannot be decoded', { cause })
  }
  if (bits === 0 || (passes === 1 ? size !== least : size < (width * height * bits) / 8))
    throw malformed(`the PNG has ${size} bytes of pixels, not ${least}`)
  return facts
}

/** Start of frame; the other codes in this range are tables. */
const isFrame = (marker: number) => marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)

function readJpeg(bytes: Buffer): ImageFacts {
  if (bytes.readUInt16BE(bytes.length - 2) !== 0xffd9) throw malformed('the JPEG is truncated')
  for (let at = 2; at + 9 < bytes.length; at += 2 + bytes.readUInt16BE(at + 2)) {
    const marker = bytes[at + 1] ?? 0
    if (bytes[at] !== 0xff || marker === 0xda) break
    if (isFrame(marker))
      return checkEdges({ type: 'jpg', height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) })
  }
  throw malformed('the JPEG has no frame')
}

function readWebp(bytes: Buffer): ImageFacts {
  const toFacts = (width: number, height: number) => checkEdges({ type: 'webp', width, height })
  if (bytes.length < 30 || bytes.readUInt32LE(4) + 8 !== bytes.length) throw malformed('the WebP is truncated')
  const form = bytes.toString('latin1', 12, 16)
  if (form === 'VP8 ' && bytes.readUIntBE(23, 3) === 0x9d012a)
    return toFacts(bytes.readUInt16LE(26) & 0x3fff, bytes.readUInt16LE(28) & 0x3fff)
  if (form === 'VP8L' && bytes[20] === 0x2f) {
    const bits = bytes.readUInt32LE(21)
    return toFacts((bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1)
  }
  if (form !== 'VP8X') throw malformed('the WebP has no frame')
  if (((bytes[20] ?? 0) & 2) !== 0) throw malformed('the WebP is animated')
  return toFacts(bytes.readUIntLE(24, 3) + 1, bytes.readUIntLE(27, 3) + 1)
}

function checkEdges(facts: ImageFacts): ImageFacts {
  const { width, height } = facts
  const [small, large] = [Math.min(width, height), Math.max(width, height)]
  if (small < LEAST_EDGE || large > MOST_EDGE)
    throw malformed(`${width} by ${height} pixels: expected ${LEAST_EDGE} to ${MOST_EDGE} on each edge`)
  if (large > small * MOST_RATIO) throw malformed(`${width} by ${height} pixels: expected about a square`)
  return facts
}

/**
 * Reads the type and the size of an image, from its bytes alone. SVG is no such type: it can contain scripts.
 * @throws DataError `provider_malformed` if it is not a PNG, JPEG or WebP image, or too small or too large.
 */
export function readImage(bytes: Buffer): ImageFacts {
  if (bytes.length > MOST_BYTES) throw malformed(`${bytes.length} bytes, at most ${MOST_BYTES}`)
  if (bytes.subarray(0, 8).equals(PNG_SIGNATURE)) return readPng(bytes)
  if (bytes.length > 4 && bytes.readUIntBE(0, 3) === 0xffd8ff) return readJpeg(bytes)
  if (bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP') return readWebp(bytes)
  throw malformed('not a PNG, JPEG or WebP image')
}
