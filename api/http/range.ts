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
