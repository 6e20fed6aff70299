import type { Transform } from 'node:stream'
import { promisify } from 'node:util'
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib'
import { toQualities } from './accept.ts'

export type Encoding = 'identity' | 'gzip' | 'br'

const gzipBytes = promisify(gzip)
const brotliBytes = promisify(brotliCompress)

/** Whole answers are compressed once and served often; streams are compressed while a client waits. */
const BROTLI_KEPT = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }
const BROTLI_STREAM = { params: { [constants.BROTLI_PARAM_QUALITY]: 2 } }

/** The best encoding that `Accept-Encoding` allows; gzip before br at equal wish, because it is cheaper to make. */
export function chooseEncoding(acceptEncoding: string | undefined): Encoding {
  if (acceptEncoding === undefined || acceptEncoding === '') return 'identity'
  const qualities = toQualities(acceptEncoding)
  const other = qualities.get('*') ?? 0
  const [forGzip, forBrotli] = [qualities.get('gzip') ?? other, qualities.get('br') ?? other]
  const best = Math.max(forGzip, forBrotli)
  // Identity without a word of its own is acceptable but the least wished for.
  if (best === 0 || (qualities.get('identity') ?? 0) > best) return 'identity'
  return forGzip === best ? 'gzip' : 'br'
}

/** The bytes in an encoding. */
export async function encode(body: Buffer, encoding: Encoding): Promise<Buffer> {
  if (encoding === 'gzip') return gzipBytes(body)
  return encoding === 'br' ? brotliBytes(body, BROTLI_KEPT) : body
}

/** A compressing stage for a stream, or none for identity. */
export function createEncoder(encoding: Encoding): Transform | undefined {
  if (encoding === 'gzip') return createGzip({ level: 1 })
  return encoding === 'br' ? createBrotliCompress(BROTLI_STREAM) : undefined
}
