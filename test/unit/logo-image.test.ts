import { crc32, deflateSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { readImage } from '../../workers/logos/image.ts'
import { toPng } from '../upstream/png.ts'

const PNG = toPng(50, Buffer.from([200, 30, 40]))
const RED = Buffer.from([255, 0, 0])

/** Returns the PNG with changed bytes; the checksums of the header and of the pixels fit. */
function withHeader(change: (data: Buffer) => void): Buffer {
  const bytes = Buffer.from(PNG)
  change(bytes.subarray(16, 29))
  bytes.writeUInt32BE(crc32(bytes.subarray(12, 29)), 29)
  return bytes
}

/** A PNG of 50 pixels whose compressed pixels are these. */
function withPixels(pixels: Buffer): Buffer {
  const data = deflateSync(pixels)
  const chunk = Buffer.alloc(data.length + 12)
  chunk.writeUInt32BE(data.length)
  chunk.write('IDAT', 4, 'latin1')
  data.copy(chunk, 8)
  chunk.writeUInt32BE(crc32(chunk.subarray(4, data.length + 8)), data.length + 8)
  return Buffer.concat([PNG.subarray(0, 33), chunk, PNG.subarray(-12)])
}

/** The segments of a JPEG that have its size, and its end. */
const toJpeg = (width: number, height: number, marker = 0xc0) => {
  const frame = Buffer.from([0xff, marker, 0, 11, 8, 0, 0, 0, 0, 1, 1, 0x11, 0])
  frame.writeUInt16BE(height, 5)
  frame.writeUInt16BE(width, 7)
  return Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2]), frame, Buffer.from([0xff, 0xd9])])
}

const toWebp = (form: string, content: Buffer) => {
  const bytes = Buffer.concat([Buffer.from(`RIFF....WEBP${form}....`, 'latin1'), content, Buffer.alloc(20)])
  bytes.writeUInt32LE(bytes.length - 8, 4)
  return bytes
}
/** Width and height minus one, each with three bytes, after flags. */
const extended = (flags: number, edge: number) => Buffer.from([flags, 0, 0, 0, edge - 1, 0, 0, edge - 1, 0, 0])
const lossless = Buffer.from([0x2f, ...Buffer.from(new Uint32Array([49 | (39 << 14)]).buffer)])
const lossy = Buffer.from([0, 0, 0, 0x9d, 0x01, 0x2a, 60, 0, 50, 0])

describe('readImage', () => {
  it.each([
    ['a PNG', PNG, { type: 'png', width: 50, height: 50 }],
    ['a JPEG', toJpeg(64, 48), { type: 'jpg', width: 64, height: 48 }],
    ['a progressive JPEG', toJpeg(64, 64, 0xc2), { type: 'jpg', width: 64, height: 64 }],
    ['a lossy WebP', toWebp('VP8 ', lossy), { type: 'webp', width: 60, height: 50 }],
    ['a lossless WebP', toWebp('VP8L', lossless), { type: 'webp', width: 50, height: 40 }],
    ['an extended WebP', toWebp('VP8X', extended(0, 64)), { type: 'webp', width: 64, height: 64 }],
  ])('reads %s', (_what, bytes, facts) => {
    expect(readImage(bytes)).toEqual(facts)
  })

  it.each([
    ['nothing', Buffer.alloc(0), 'not a PNG, JPEG or WebP image'],
    ['SVG', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>'), 'not a PNG, JPEG or WebP image'],
    ['HTML', Buffer.from('<!doctype html><title>Sign in</title>'), 'not a PNG, JPEG or WebP image'],
    ['a GIF', Buffer.from('GIF89a', 'latin1'), 'not a PNG, JPEG or WebP image'],
    ['too many bytes', Buffer.concat([PNG, Buffer.alloc(70_000)]), 'bytes, at most 65536'],
    ['half a PNG', PNG.subarray(0, PNG.length >> 1), 'truncated'],
    ['a PNG without an end', PNG.subarray(0, -12), 'truncated'],
    ['a PNG with more behind it', Buffer.concat([PNG, Buffer.from('<script>')]), 'bytes after its end'],
    ['a PNG with a wrong checksum', PNG.with(30, (PNG[30] ?? 0) ^ 1), 'checksum of IHDR'],
    ['a PNG that declares a huge size', withHeader((data) => data.writeUInt32BE(60_000, 0)), '60000 by 50 pixels'],
    ['a PNG that declares another size', withHeader((data) => data.writeUInt32BE(51, 0)), 'bytes of pixels, not 7700'],
    ['a PNG of an unknown colour', withHeader((data) => data.fill(9, 9, 10)), 'pixels'],
    ['a PNG with more pixels than it declares', withPixels(Buffer.alloc(10_000_000)), 'cannot be decoded'],
    ['a PNG with damaged pixels', withPixels(Buffer.alloc(10)), '10 bytes of pixels, not 7550'],
    ['a PNG of one pixel', toPng(1, RED), '1 by 1 pixels: expected 16 to 512'],
    ['a JPEG of a banner', toJpeg(400, 100), '400 by 100 pixels: expected about a square'],
    ['a JPEG without a frame', toJpeg(64, 64, 0xe1), 'no frame'],
    ['half a JPEG', toJpeg(64, 64).subarray(0, 20), 'truncated'],
    ['an animated WebP', toWebp('VP8X', extended(2, 64)), 'animated'],
    ['half a WebP', toWebp('VP8 ', lossy).subarray(0, 31), 'truncated'],
    ['a WebP of an unknown form', toWebp('XXXX', lossy), 'no frame'],
  ])('rejects %s', (_what, bytes, reason) => {
    expect(() => readImage(Buffer.from(bytes))).toThrow(reason)
  })
})
