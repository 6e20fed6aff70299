import type { z } from 'zod'
import type { DayMembers } from '../../shared/datasets/day-members.ts'
import { INTERVAL_SECONDS, type Interval } from '../../shared/intervals.ts'
import { toObject } from '../records/columns.ts'

/**
 * SQL for the points of a series source that compare each day with the day one interval before: the sums on both days
 * over the members with a value on both, and their number. A day without common members has no point. Values are added
 * as decimals, like the stored sums: floating-point sums depend on the order in which rows are read.
 */
export function toLikeForLikeSql(record: z.ZodObject, members: DayMembers, interval: Interval): string {
  const seconds = INTERVAL_SECONDS[interval]
  const sum = (column: string) => `toFloat64(sum(toDecimal256(${column}, 12)))`
  return `SELECT toDateTime64(day, 3, 'UTC') AS row_at, row_at AS as_of,
  ${toObject(record, 'row_at, tuple(value, before, 100 * (value / before - 1), tuple(members))')} AS record
FROM
(
  SELECT day, ${sum('usd_now')} AS value, ${sum('usd_before')} AS before, count() AS members
  FROM
  (
    SELECT place.1 AS day, member, anyIf(usd, NOT place.2) AS usd_now, anyIf(usd, place.2) AS usd_before
    FROM
    (
      SELECT member, usd, arrayJoin([(toDateTime(day, 'UTC'), false), (toDateTime(day, 'UTC') + INTERVAL ${seconds} SECOND, true)]) AS place
      FROM (${members(seconds * 1000)})
    )
    GROUP BY day, member
    HAVING countIf(place.2) > 0 AND countIf(NOT place.2) > 0
  )
  GROUP BY day
)
WHERE row_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') AND row_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC')`
}
