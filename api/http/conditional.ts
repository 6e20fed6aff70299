import { createHash } from 'node:crypto'
import type { Encoding } from './accept.ts'

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
export function isKnownTo(ifNoneMatch: string | undefined, value: string): boolean {
  if (ifNoneMatch === undefined) return false
  if (ifNoneMatch.trim() === '*') return true
  for (const [, tag = ''] of ifNoneMatch.matchAll(TAG)) {
    if (tag === value || tag.replace(/-(?:gzip|br)$/, '') === value) return true
  }
  return false
}

/**
 * Whether `If-Match` matches the answer, or is absent (RFC 9110, section 13.1.1), by the strong comparison that this
 * header requires. Null means an answer without a tag.
 */
export function isMatched(ifMatch: string | undefined, value: string | null): boolean {
  if (ifMatch === undefined || ifMatch.trim() === '*') return true
  const strong = ifMatch.replaceAll(/W\/"[^"]*"/g, '')
  return value !== null && isKnownTo(strong, value)
}
