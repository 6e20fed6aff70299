/** Condition for times within `{from: Int64}` and `{to: Int64}`, or up to `backMs` before. */
export const withinDays = (column: string, backMs = 0) =>
  `${column} >= fromUnixTimestamp64Milli({from: Int64} - ${backMs}, 'UTC') AND ${column} < fromUnixTimestamp64Milli({to: Int64}, 'UTC')`

/**
 * Condition that a member counts on a day: it is live in `table`, or had not ended by then according to the parameters
 * of `toLifetimes`.
 */
export const isMember = (
  key: string,
  day: string,
  table: string,
) => `${key} IN (SELECT key FROM ${table} FINAL WHERE live OR has({ended: Array(UInt64)}, key))
    AND (NOT has({ended: Array(UInt64)}, ${key}) OR toUnixTimestamp(${day}) < {endedAt: Array(UInt32)}[indexOf({ended: Array(UInt64)}, ${key})])
    AND toUnixTimestamp(${day}) >= {begunAt: Array(UInt32)}[indexOf({begun: Array(UInt64)}, ${key})]`

/**
 * SQL for the members' values of a daily sum: one row per day and member. `day` is the start of the day as DateTime,
 * `usd` the value. `member` differs if two values are not comparable. Parameters: those of `toLifetimes`, and the days
 * as `{from: Int64}` (inclusive) and `{to: Int64}` (exclusive) in Unix milliseconds. The rows also cover `backMs`
 * before `from`.
 */
export type DayMembers = (backMs?: number) => string
