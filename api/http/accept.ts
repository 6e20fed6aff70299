import { LRUCache } from 'lru-cache'

/** Longer headers are rare and not cached. */
const MAX_REMEMBERED_LENGTH = 300
/** Browsers send no longer headers. Parsing one would take up to 0.1 seconds, so a longer header counts as absent. */
const MAX_LENGTH = 2_000

/** Caches results by header: clients repeat a few values. */
function remember<T>(find: (header: string) => T): (header: string) => T {
  const known = new LRUCache<string, { readonly found: T }>({ max: 200 })
  return (header) => {
    const before = known.get(header)
    if (before !== undefined) return before.found
    const found = find(header)
    if (header.length <= MAX_REMEMBERED_LENGTH) known.set(header, { found })
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

export type Encoding = 'identity' | 'gzip' | 'br'

const chooseNamed = remember((header): Encoding => {
  const wishes = toWishes(header)
  const other = wishes.get('*') ?? 0
  const [forGzip, forBrotli] = [wishes.get('gzip') ?? other, wishes.get('br') ?? other]
  const best = Math.max(forGzip, forBrotli)
  // If identity is not listed, it is acceptable with the lowest preference.
  if (best === 0 || (wishes.get('identity') ?? 0) > best) return 'identity'
  return forGzip === best ? 'gzip' : 'br'
})

/** The best encoding that `Accept-Encoding` allows. At equal quality gzip wins over br, because it is cheaper. */
export function chooseEncoding(acceptEncoding: string | string[] | undefined): Encoding {
  const header = String(acceptEncoding ?? '')
  return header === '' || header.length > MAX_LENGTH ? 'identity' : chooseNamed(header)
}
