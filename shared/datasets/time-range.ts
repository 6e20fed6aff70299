/**
 * SQL condition on times: from `{from: Int64}` (inclusive) to `{to: Int64}` (exclusive), in Unix milliseconds. In a
 * statement with several ranges both names end with the number of the range.
 */
export const isWithin = (column: string, number: number | '' = ''): string =>
  `${column} >= fromUnixTimestamp64Milli({from${number}: Int64}, 'UTC') AND ${column} < fromUnixTimestamp64Milli({to${number}: Int64}, 'UTC')`
