import type { Transform } from 'node:stream'
import { promisify } from 'node:util'
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib'
import type { Encoding } from './accept.ts'

const gzipBytes = promisify(gzip)
const brotliBytes = promisify(brotliCompress)

/** Complete answers are compressed once and served often; streams are compressed while a client waits. */
const BROTLI_KEPT = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }
const BROTLI_STREAM = { params: { [constants.BROTLI_PARAM_QUALITY]: 2 } }

export async function encode(body: Buffer, encoding: Encoding): Promise<Buffer> {
  if (encoding === 'gzip') return gzipBytes(body)
  return encoding === 'br' ? brotliBytes(body, BROTLI_KEPT) : body
}

/** A compression stage for a stream; undefined for identity. */
export function createEncoder(encoding: Encoding): Transform | undefined {
  if (encoding === 'gzip') return createGzip({ level: 1 })
  return encoding === 'br' ? createBrotliCompress(BROTLI_STREAM) : undefined
}
