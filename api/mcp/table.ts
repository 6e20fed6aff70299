/** Values in answers to assistants are shortened, and the answer names the omitted parts. */
const DIGITS = 8
const MOST_TEXT = 240

/**
 * An assistant's context is small: this limit is at most 6,000 tokens. JSON of numbers and ids has one token per two
 * characters (o200k), other JSON one per three or four.
 */
const MOST_CHARACTERS = 11_500

/** Maximum number of values in an answer: each takes at least a digit and a comma. */
export const MOST_VALUES = MOST_CHARACTERS / 2

export type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Shortens a value: eight digits, short texts, and at most `items` items per list. */
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
 * The value at a path such as `financialData.price`. At `topHolders[].share` the list of each item's value. Null if
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

/** The paths of all values of records, in order; a list is one value. */
export function toPaths(records: readonly Json[]): readonly string[] {
  const paths = new Set<string>()
  const walk = (value: Json, before: string) => {
    for (const [name, one] of Object.entries(value))
      if (isObject(one)) walk(one, `${before}${name}.`)
      else paths.add(before + name)
  }
  for (const record of records) walk(record, '')
  // One record may have an object where another has null.
  return [...paths].filter((path) => ![...paths].some((longer) => longer.startsWith(`${path}.`)))
}

/** Number of unknown values per column, if there are any; for a list its items are counted. */
export function countUnknown(columns: readonly string[], records: readonly Json[]): Readonly<Record<string, number>> {
  const counts = columns.map((path): [string, number] => [
    path,
    records.flatMap((record) => valueAt(record, path)).filter((value) => value === null).length,
  ])
  return Object.fromEntries(counts.filter(([, count]) => count > 0))
}

const LIST_LENGTHS = [10, 3, 1, 0] as const

/**
 * The longest form of an answer that fits, by number of rows and of items per nested list. Rows are dropped first, and
 * items only if a single row is too long.
 */
export function cutToSize<T>(
  rows: number,
  make: (rows: number, items: number) => T,
): { readonly answer: T; readonly shown: number } {
  let smallest = { answer: make(Math.min(rows, 1), 0), shown: Math.min(rows, 1) }
  for (const items of LIST_LENGTHS) {
    let shown = rows
    while (true) {
      const answer = make(shown, items)
      const { length } = JSON.stringify(answer)
      if (length <= MOST_CHARACTERS) return { answer, shown }
      smallest = { answer, shown }
      if (shown <= 1) break
      shown = Math.max(1, Math.min(shown - 1, Math.floor((shown * MOST_CHARACTERS) / length)))
    }
  }
  return smallest
}
