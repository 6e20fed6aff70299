import { createHash } from 'node:crypto'
import type { Transform } from 'node:stream'
import { promisify } from 'node:util'
import zlib, { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib'
import { LRUCache } from 'lru-cache'

/** Longer headers are rare and not cached. */
const MAX_REMEMBERED_LENGTH = 300
/** Browsers send no longer headers. Parsing one would take up to 0.1 seconds, so a longer header counts as absent. */
const MAX_LENGTH = 2_000

/** Caches results by header: clients repeat a few values. */
function remember<T>(find: (header: string) => T): (header: string) => T {
  const cached = new LRUCache<string, { readonly found: T }>({ max: 200 })
  return (header) => {
    const before = cached.get(header)
    if (before !== undefined) return before.found
    const found = find(header)
    if (header.length <= MAX_REMEMBERED_LENGTH) cached.set(header, { found })
    return found
  }
}

/**
 * The members of an `Accept` or `Accept-Encoding` header in lower case, with their quality from 0 (not acceptable) to
 * 1. Parameters of media types are ignored.
 */
function toWishes(header: string): ReadonlyMap<string, number> {
  const wishes = new Map<string, number>()
  for (const member of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = member.split(';').map((text) => text.trim())
    if (name === '') continue
    const quality = parameters.find((parameter) => parameter.startsWith('q='))
    const value = quality === undefined ? 1 : Number(quality.slice(2))
    wishes.set(name, Number.isNaN(value) ? 0 : value)
  }
  return wishes
}

function toWished<Type extends string>(accept: string, types: readonly Type[]): Type | undefined {
  const wishes = toWishes(accept)
  let best: { type: Type; quality: number; range: number } | undefined
  for (const type of types) {
    const ranges: string[] = [type, `${type.split('/', 1)[0]}/*`, '*/*']
    const range = ranges.findIndex((one) => wishes.has(one))
    const quality = wishes.get(ranges[range] ?? '') ?? 0
    if (quality === 0) continue
    const isBetter = best === undefined || quality > best.quality || (quality === best.quality && range < best.range)
    if (isBetter) best = { type, quality, range }
  }
  return best?.type
}

/**
 * Creates a function that returns the media type (without parameters) that an `Accept` header prefers; undefined if it
 * accepts none of them. The most specific range decides about a type. Among types of equal quality, types named in the
 * header win, then the first of `types`: the order in the header has no meaning in HTTP.
 */
export function createMediaTypeChooser<Type extends string>(
  types: readonly Type[],
): (accept: string | undefined) => Type | undefined {
  const choose = remember((accept) => toWished(accept, types))
  return (accept) => {
    const leavesTheChoice =
      accept === undefined || accept === '*/*' || accept.length > MAX_LENGTH || accept.trim() === ''
    return leavesTheChoice ? types[0] : choose(accept)
  }
}

export type Encoding = 'identity' | 'gzip' | 'zstd' | 'br'

/** Zstandard, which Node has from 22.15 on. The types of Node 20 do not contain it. */
interface Zstandard {
  zstdCompress(body: Buffer, options: ZstandardOptions, callback: (error: Error | null, bytes: Buffer) => void): void
  createZstdCompress(options: ZstandardOptions): Transform
}
interface ZstandardOptions {
  readonly params: Readonly<Record<number, number>>
  readonly readableHighWaterMark?: number
}

const zstandard = 'zstdCompress' in zlib ? (zlib as unknown as Zstandard) : undefined

/** Compressed encodings, the cheapest first: series are cached in the form of gzip. */
const COMPRESSED: readonly Encoding[] = ['gzip', ...(zstandard === undefined ? [] : ['zstd' as const]), 'br']

const chooseNamed = remember((header): Encoding => {
  const wishes = toWishes(header)
  const rest = wishes.get('*') ?? 0
  const toQuality = (encoding: Encoding) => wishes.get(encoding) ?? rest
  const best = Math.max(...COMPRESSED.map(toQuality))
  // If identity is not listed, it is acceptable with the lowest preference.
  if (best === 0 || (wishes.get('identity') ?? 0) > best) return 'identity'
  return COMPRESSED.find((encoding) => toQuality(encoding) === best) ?? 'identity'
})

/** The best encoding that `Accept-Encoding` allows; at equal quality the cheapest. */
export function chooseEncoding(acceptEncoding: string | string[] | undefined): Encoding {
  const header = String(acceptEncoding ?? '')
  return header === '' || header.length > MAX_LENGTH ? 'identity' : chooseNamed(header)
}

const gzipBytes = promisify(gzip)
const brotliBytes = promisify(brotliCompress)

/** ZSTD_c_compressionLevel, which the types of Node 20 do not contain. */
const ZSTANDARD_LEVEL = 100

/** Levels of compression: of Brotli from 0 to 11, of gzip and Zstandard from 1. */
interface Levels {
  readonly br: number
  readonly gzip: number
  readonly zstd: number
}

/** For streams and for answers that are not cached: they are compressed for each request. */
const CHEAP: Levels = { br: 1, gzip: 1, zstd: 1 }

/** For cached answers, which are compressed once, by the largest size: each level takes at most some milliseconds. */
const CACHED: readonly (Levels & { readonly maxBytes: number })[] = [
  { maxBytes: 64 * 1024, br: 5, gzip: 6, zstd: 3 },
  { maxBytes: 256 * 1024, br: 3, gzip: 6, zstd: 3 },
  { maxBytes: 1024 * 1024, br: 2, gzip: 4, zstd: 3 },
]

const toLevels = (bytes: number, isCached: boolean): Levels =>
  (isCached ? CACHED.find(({ maxBytes }) => bytes <= maxBytes) : undefined) ?? CHEAP

const toBrotliOptions = (quality: number) => ({ params: { [constants.BROTLI_PARAM_QUALITY]: quality } })

/** Compresses a complete body in the thread pool. */
export async function encode(
  body: Buffer,
  encoding: Encoding,
  { isCached = true }: { readonly isCached?: boolean } = {},
): Promise<Buffer> {
  const { br, gzip: level, zstd } = toLevels(body.length, isCached)
  if (encoding === 'gzip') return gzipBytes(body, { level })
  if (encoding === 'zstd' && zstandard !== undefined)
    return promisify(zstandard.zstdCompress)(body, { params: { [ZSTANDARD_LEVEL]: zstd } })
  return encoding === 'br' ? brotliBytes(body, toBrotliOptions(br)) : body
}

/** A compression stage for a stream, with space for `readableHighWaterMark` bytes that are not read yet. */
export function createEncoder(encoding: Exclude<Encoding, 'identity'>, readableHighWaterMark: number): Transform {
  const { br, gzip: level, zstd } = CHEAP
  const space = { readableHighWaterMark }
  if (encoding === 'br') return createBrotliCompress({ ...toBrotliOptions(br), ...space })
  if (encoding === 'zstd' && zstandard !== undefined)
    return zstandard.createZstdCompress({ params: { [ZSTANDARD_LEVEL]: zstd }, ...space })
  return createGzip({ level, ...space })
}

/**
 * The opaque part of a strong entity tag (RFC 9110, section 8.8.3): 128 bits of a hash of the data that identifies the
 * bytes.
 */
export function toTagValue(identity: Buffer | string): string {
  return createHash('sha256').update(identity).digest('base64url').slice(0, 22)
}

/** The entity tag of one encoding of an answer. Encodings differ in bytes, so their strong tags differ too. */
export function toEntityTag(value: string, encoding: Encoding): string {
  return encoding === 'identity' ? `"${value}"` : `"${value}-${encoding}"`
}

const TAG = /(?:W\/)?"([^"]*)"/g

/**
 * Whether `If-None-Match` matches the answer, by the weak comparison that this header requires. A tag of another
 * encoding also matches. `If-Modified-Since` is not supported: a back-fill changes old points but not the newest time,
 * so that header could hide a change.
 */
export function matchesTag(ifNoneMatch: string | undefined, value: string): boolean {
  if (ifNoneMatch === undefined) return false
  if (ifNoneMatch.trim() === '*') return true
  for (const [, tag = ''] of ifNoneMatch.matchAll(TAG)) {
    if (tag === value || tag.replace(/-(?:gzip|zstd|br)$/, '') === value) return true
  }
  return false
}

/**
 * Whether `If-Match` matches the answer, or is absent (RFC 9110, section 13.1.1), by the strong comparison that this
 * header requires. The header is ignored for an answer without a tag (null), because there is nothing to compare.
 */
export function isMatched(ifMatch: string | undefined, value: string | null): boolean {
  if (ifMatch === undefined || value === null || ifMatch.trim() === '*') return true
  const strong = ifMatch.replaceAll(/W\/"[^"]*"/g, '')
  return matchesTag(strong, value)
}

/** A byte range of a representation, both ends inclusive. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

const ONE_RANGE = /^bytes\s*=\s*(?:(\d+)\s*)?-\s*(\d*)$/i

/**
 * Parses a `Range` header (RFC 9110, section 14.1.2) for a representation of `length` bytes. Undefined if the header
 * must be ignored: another unit, several ranges, or an invalid range.
 */
export function toByteRange(header: string | undefined, length: number): ByteRange | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = ONE_RANGE.exec(header?.trim() ?? '') ?? []
  if (first === '' && last === '') return undefined
  if (first === '')
    return Number(last) === 0 || length === 0
      ? 'unsatisfiable'
      : { start: Math.max(0, length - Number(last)), end: length - 1 }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return undefined
  if (start >= length) return 'unsatisfiable'
  return { start, end: last === '' ? length - 1 : Math.min(Number(last), length - 1) }
}

/**
 * Whether `If-Range` allows a partial response: it names exactly these bytes. A date never does, because a back-fill
 * changes old rows but not the newest time.
 */
export const isSameAs = (ifRange: string | string[] | undefined, entityTag: string): boolean =>
  ifRange === undefined || String(ifRange).trim() === entityTag
