/** Values in answers to assistants are short, and the answer names what is left out. */
const DIGITS = 8
const MOST_TEXT = 240

/**
 * An assistant's context is small: these are 6,000 tokens at most. JSON that is all numbers and ids has one in two
 * characters (o200k), other JSON one in three or four.
 */
const MOST_CHARACTERS = 11_500

/** Most values that fit into an answer: each takes a digit and a comma at least. */
export const MOST_VALUES = MOST_CHARACTERS / 2

export type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** A value with eight digits, short texts, and at most so many items in each list. */
export function shorten(value: unknown, items: number): unknown {
  if (typeof value === 'number') return Number.isInteger(value) ? value : Number(value.toPrecision(DIGITS))
  if (typeof value === 'string') return value.length > MOST_TEXT ? `${value.slice(0, MOST_TEXT)}…` : value
  if (Array.isArray(value)) {
    const shown = value.slice(0, items).map((item) => shorten(item, items))
    return value.length > items ? [...shown, `… ${value.length - items} more`] : shown
  }
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shorten(one, items)]))
}

/**
 * The value at a path such as `financialData.price`, and the list of those of each item at `topHolders[].share`; null where
 * there is none.
 */
export function valueAt(record: unknown, path: string): unknown {
  const end = path.indexOf('[].')
  if (end !== -1) {
    const list = valueAt(record, path.slice(0, end))
    return Array.isArray(list) ? list.map((item) => valueAt(item, path.slice(end + '[].'.length))) : null
  }
  let value = record
  for (const name of path.split('.')) value = isObject(value) ? (value[name] ?? null) : null
  return value
}

/** The paths of all values of records, in their order; a list is one value. */
export function toPaths(records: readonly Json[]): readonly string[] {
  const paths = new Set<string>()
  const walk = (value: Json, before: string) => {
    for (const [name, one] of Object.entries(value))
      if (isObject(one)) walk(one, `${before}${name}.`)
      else paths.add(before + name)
  }
  for (const record of records) walk(record, '')
  // Where one record has an object another may have null.
  return [...paths].filter((path) => ![...paths].some((other) => other.startsWith(`${path}.`)))
}

/** How many values of each column are unknown, where any is: of a list its items are. */
export function countUnknown(columns: readonly string[], records: readonly Json[]): Readonly<Record<string, number>> {
  const counts = columns.map((path): [string, number] => [
    path,
    records.flatMap((record) => valueAt(record, path)).filter((value) => value === null).length,
  ])
  return Object.fromEntries(counts.filter(([, count]) => count > 0))
}

const LIST_LENGTHS = [10, 3, 1, 0] as const

/**
 * The longest form of an answer that fits: with so many rows, and so many items in each list inside of them. Rows are left
 * out first, and items only where a single row is too long.
 */
export function cutToSize<T>(
  rows: number,
  make: (rows: number, items: number) => T,
): { readonly made: T; readonly shown: number } {
  let smallest = { made: make(Math.min(rows, 1), 0), shown: Math.min(rows, 1) }
  for (const items of LIST_LENGTHS) {
    let shown = rows
    while (true) {
      const made = make(shown, items)
      const { length } = JSON.stringify(made)
      if (length <= MOST_CHARACTERS) return { made, shown }
      smallest = { made, shown }
      if (shown <= 1) break
      shown = Math.max(1, Math.min(shown - 1, Math.floor((shown * MOST_CHARACTERS) / length)))
    }
  }
  return smallest
}
