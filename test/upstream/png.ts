import { crc32, deflateSync } from 'node:zlib'

function toChunk(type: string, data: Buffer): Buffer {
  const chunk = Buffer.alloc(data.length + 12)
  chunk.writeUInt32BE(data.length)
  chunk.write(type, 4, 'latin1')
  data.copy(chunk, 8)
  chunk.writeUInt32BE(crc32(chunk.subarray(4, data.length + 8)), data.length + 8)
  return chunk
}

/** A square of one colour as a PNG. */
export function toPng(edge: number, rgb: Uint8Array): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(edge, 0)
  header.writeUInt32BE(edge, 4)
  header.set([8, 2], 8)
  const row = Buffer.concat([Buffer.alloc(1), ...Array.from({ length: edge }, () => rgb)])
  const pixels = deflateSync(Buffer.concat(Array.from({ length: edge }, () => row)))
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    toChunk('IHDR', header),
    toChunk('IDAT', pixels),
    toChunk('IEND', Buffer.alloc(0)),
  ])
}
