/** One sort value of a list, ascending, and its type. */
type Part = readonly [sql: string, type: 'UInt8' | 'UInt32' | 'Int64' | 'UInt64' | 'Float64' | 'String']

/**
 * The values that order a list, by which a page goes on after the last record of the one before. A statement selects
 * `written` as `page_key`, takes the rows that are `after` the text in parameter `after` (all when it is empty) and
 * orders by `order`.
 */
export interface Keyset {
  readonly order: string
  readonly written: string
  readonly after: string
}

/** A keyset of values that are unique together and never null. */
export function defineKeyset(...parts: readonly Part[]): Keyset {
  const values = parts.map(([sql]) => sql).join(', ')
  const order = `tuple(${values})`
  const types = parts.map(([, type]) => type).join(', ')
  return {
    order: values,
    // A float as text: JSON writes large ones as integers, which are not read back.
    written: `toJSONString(tuple(${parts.map(([sql, type]) => (type === 'Float64' ? `toString(${sql})` : sql)).join(', ')}))`,
    after: `({after: String} = '' OR ${order} > JSONExtract({after: String}, 'Tuple(${types})'))`,
  }
}
