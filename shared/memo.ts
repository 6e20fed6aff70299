/**
 * Caches the results of a pure function for at most `most` texts. The rows of many entities share a few thousand times,
 * and parsing a time costs ten times as much as a lookup.
 */
export function remembering<T>(toValue: (text: string) => T, most = 20_000): (text: string) => T {
  const known = new Map<string, T>()
  return (text) => {
    const found = known.get(text)
    if (found !== undefined) return found
    if (known.size >= most) known.clear()
    const value = toValue(text)
    known.set(text, value)
    return value
  }
}

/** A time in Unix milliseconds; NaN for invalid text. */
export const toMs: (text: string) => number = remembering(Date.parse)
