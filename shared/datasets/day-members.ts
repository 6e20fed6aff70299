/** The condition that a time lies in the days that a statement is asked for, `{from: Int64}` and `{to: Int64}`, or so long before. */
export const withinDays = (column: string, backMs = 0) =>
  `${column} >= fromUnixTimestamp64Milli({from: Int64} - ${backMs}, 'UTC') AND ${column} < fromUnixTimestamp64Milli({to: Int64}, 'UTC')`

/**
 * The condition that a member counts on a day: one of `table` that is live, or that had not ended, as the parameters of
 * `toLifetimes` say.
 */
export const isMember = (
  key: string,
  day: string,
  table: string,
) => `${key} IN (SELECT key FROM ${table} FINAL WHERE live OR has({ended: Array(UInt64)}, key))
    AND (NOT has({ended: Array(UInt64)}, ${key}) OR toUnixTimestamp(${day}) < {endedAt: Array(UInt32)}[indexOf({ended: Array(UInt64)}, ${key})])
    AND toUnixTimestamp(${day}) >= {begunAt: Array(UInt32)}[indexOf({begun: Array(UInt64)}, ${key})]`

/**
 * What each member of a daily sum has a part of it with: a SELECT of one row per day and member with `day`, the day's start as
 * DateTime, `member`, which is another one where two values cannot be compared, and `usd`. Its parameters are those of
 * `toLifetimes` and the days as `{from: Int64}`, inclusive, and `{to: Int64}`, exclusive, in Unix milliseconds; those so
 * long before are in it as well.
 */
export type DayMembers = (backMs?: number) => string
