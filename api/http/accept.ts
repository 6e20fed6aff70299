import { LRUCache } from 'lru-cache'

/** What a header wishes for, in lower case, with how much from 0 (refused) to 1. */
type Wishes = ReadonlyMap<string, number>

/** Clients send the same few headers over and over. */
const read = new LRUCache<string, Wishes>({ max: 300 })
const MAX_REMEMBERED_LENGTH = 300

/** The members of an `Accept` or `Accept-Encoding` header. Parameters of media types make no difference here. */
function readWishes(header: string): Wishes {
  const before = read.get(header)
  if (before !== undefined) return before
  const wishes = new Map<string, number>()
  for (const member of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = member.split(';').map((text) => text.trim())
    if (name === '') continue
    const quality = parameters.find((parameter) => parameter.startsWith('q='))
    const value = quality === undefined ? 1 : Number(quality.slice(2))
    wishes.set(name, Number.isNaN(value) ? 0 : value)
  }
  if (header.length <= MAX_REMEMBERED_LENGTH) read.set(header, wishes)
  return wishes
}

/**
 * The media type (without parameters) that an `Accept` header wishes for most; undefined when it takes none of them.
 * The most specific range decides about a type. Of types wished for equally it is one that the header names, then the
 * first of `types`: in which order a client names them says nothing in HTTP.
 */
export function chooseMediaType(accept: string | undefined, types: readonly string[]): string | undefined {
  if (accept === undefined || accept === '*/*' || accept.trim() === '') return types[0]
  const wishes = readWishes(accept)
  let best: { type: string; quality: number; range: number } | undefined
  for (const type of types) {
    const ranges = [type, `${type.split('/', 1)[0]}/*`, '*/*']
    const range = ranges.findIndex((one) => wishes.has(one))
    const quality = wishes.get(ranges[range] ?? '') ?? 0
    if (quality === 0) continue
    const isBetter = best === undefined || quality > best.quality || (quality === best.quality && range < best.range)
    if (isBetter) best = { type, quality, range }
  }
  return best?.type
}

export type Encoding = 'identity' | 'gzip' | 'br'

/** The best encoding that `Accept-Encoding` allows; gzip before br at equal wish, because it is cheaper to make. */
export function chooseEncoding(acceptEncoding: string | string[] | undefined): Encoding {
  const header = String(acceptEncoding ?? '')
  if (header === '') return 'identity'
  const wishes = readWishes(header)
  const other = wishes.get('*') ?? 0
  const [forGzip, forBrotli] = [wishes.get('gzip') ?? other, wishes.get('br') ?? other]
  const best = Math.max(forGzip, forBrotli)
  // Identity without a word of its own is acceptable but the least wished for.
  if (best === 0 || (wishes.get('identity') ?? 0) > best) return 'identity'
  return forGzip === best ? 'gzip' : 'br'
}
