import type { Transform } from 'node:stream'
import { promisify } from 'node:util'
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import { toQualities } from './accept.ts'

export type Encoding = 'identity' | 'gzip' | 'br'

const gzipBytes = promisify(gzip)
const brotliBytes = promisify(brotliCompress)

/** Whole answers are compressed once and served often; streams are compressed while a client waits. */
const BROTLI_KEPT = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }
const BROTLI_STREAM = { params: { [constants.BROTLI_PARAM_QUALITY]: 2 } }

/** Clients send the same few headers over and over. */
const chosen = new LRUCache<string, Encoding>({ max: 100 })

/** The best encoding that `Accept-Encoding` allows; gzip before br at equal wish, because it is cheaper to make. */
export function chooseEncoding(acceptEncoding: string | string[] | undefined): Encoding {
  const header = String(acceptEncoding ?? '')
  if (header === '') return 'identity'
  const before = chosen.get(header)
  if (before !== undefined) return before
  const encoding = toBestEncoding(toQualities(header))
  if (header.length <= 200) chosen.set(header, encoding)
  return encoding
}

function toBestEncoding(qualities: ReadonlyMap<string, number>): Encoding {
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
