import { createHash } from 'node:crypto'
import type { Encoding } from './accept.ts'

/**
 * The opaque part of a strong entity tag (RFC 9110, section 8.8.3): 128 bits of a hash of what identifies the bytes.
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
 * Whether `If-None-Match` names the answer. The comparison is the weak one that this header asks for, and a tag of
 * another encoding names the same answer. There is no `If-Modified-Since`: a backfill changes old points and leaves
 * the newest time as it is, so that header could hide a change.
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
 * Whether `If-Match` names the answer, or is absent (RFC 9110, section 13.1.1). The comparison is the strong one that this
 * header asks for; null is an answer without a tag.
 */
export function isMatched(ifMatch: string | undefined, value: string | null): boolean {
  if (ifMatch === undefined || ifMatch.trim() === '*') return true
  const strong = ifMatch.replaceAll(/W\/"[^"]*"/g, '')
  return value !== null && isKnownTo(strong, value)
}
