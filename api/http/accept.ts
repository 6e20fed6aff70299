import { LRUCache } from 'lru-cache'

/** The members of an `Accept` or `Accept-Encoding` header in lower case, with their wish from 0 (refused) to 1. */
export function toQualities(header: string): ReadonlyMap<string, number> {
  const qualities = new Map<string, number>()
  for (const part of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim())
    if (name === '') continue
    const quality = parameters.find((parameter) => parameter.startsWith('q='))
    const value = quality === undefined ? 1 : Number(quality.slice(2))
    qualities.set(name, Number.isNaN(value) ? 0 : value)
  }
  return qualities
}

/** Clients send the same few headers over and over. */
const known = new LRUCache<string, ReadonlyMap<string, number>>({ max: 200 })

function knownQualities(header: string): ReadonlyMap<string, number> {
  const before = known.get(header)
  if (before !== undefined) return before
  const qualities = toQualities(header)
  if (header.length <= 300) known.set(header, qualities)
  return qualities
}

/** Whether an `Accept` header takes a media type (without parameters); the most specific range decides. */
export function accepts(accept: string | undefined, mediaType: string): boolean {
  if (accept === undefined || accept.trim() === '' || accept === '*/*') return true
  const qualities = knownQualities(accept)
  const range = `${mediaType.split('/')[0]}/*`
  return (qualities.get(mediaType) ?? qualities.get(range) ?? qualities.get('*/*') ?? 0) > 0
}
