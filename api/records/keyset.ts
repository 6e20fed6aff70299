/** One sort value of a list, ascending, and its type. */
type Part = readonly [sql: string, type: 'UInt8' | 'UInt32' | 'Int64' | 'UInt64' | 'Float64' | 'String']

/**
 * The values that order a list, by which a page goes on after the last record of the one before. A statement selects
 * `place` as `page_key` and orders by `order`.
 */
export interface Keyset {
  readonly order: string
  readonly place: string
  /** ` AND ...` for what comes after the record with these sort values, in parameter `after`; nothing on a first page. */
  isAfter(after: string): string
}

/** A keyset of values that are unique together and never null. */
export function defineKeyset(...parts: readonly Part[]): Keyset {
  const values = parts.map(([sql]) => sql).join(', ')
  const types = parts.map(([, type]) => type).join(', ')
  // A float as text: JSON writes large ones as integers, which are not read back.
  const written = parts.map(([sql, type]) => (type === 'Float64' ? `toString(${sql})` : sql)).join(', ')
  return {
    order: values,
    place: `tuple(${written})`,
    isAfter: (after) => (after === '' ? '' : ` AND tuple(${values}) > JSONExtract({after: String}, 'Tuple(${types})')`),
  }
}
