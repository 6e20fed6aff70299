/**
 * Remembers what a pure function gave for the last texts, at most `most` of them: the rows of many entities have the same
 * few thousand times, and reading a time costs ten times what finding it again does.
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

/** A time in Unix milliseconds; NaN where the text is none. */
export const toMs: (text: string) => number = remembering(Date.parse)
