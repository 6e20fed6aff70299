/**
 * Caches the results of a pure function for at most `most` texts. The rows of many entities share a few thousand times,
 * and parsing a time costs ten times as much as a lookup.
 */
export function remembering<T>(toValue: (text: string) => T, most = 20_000): (text: string) => T {
  const cached = new Map<string, T>()
  return (text) => {
    const found = cached.get(text)
    if (found !== undefined) return found
    if (cached.size >= most) cached.clear()
    const value = toValue(text)
    cached.set(text, value)
    return value
  }
}

/** A time in Unix milliseconds; NaN for invalid text. */
export const toMs: (text: string) => number = remembering(Date.parse)
