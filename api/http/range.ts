/** Bytes of a representation, both ends included. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

const ONE_RANGE = /^bytes\s*=\s*(?:(\d+)\s*)?-\s*(\d*)$/i

/**
 * The bytes that a `Range` header asks for (RFC 9110, section 14.1.2), of a representation of so many bytes. Undefined
 * where it is to be ignored: another unit, several ranges, or nothing that is one.
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
 * Whether `If-Range` allows a part: it names exactly these bytes. A time never does, because a back-fill changes old rows
 * and leaves the newest time as it is.
 */
export const isSameAs = (ifRange: string | string[] | undefined, entityTag: string): boolean =>
  ifRange === undefined || String(ifRange).trim() === entityTag
