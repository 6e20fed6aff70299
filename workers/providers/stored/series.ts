import { type DailySumRow, dailySumRow } from '../../../shared/datasets/daily-sum.ts'
import { type DayMembers, withinDays } from '../../../shared/datasets/day-members.ts'
import { DAY_MS, type TimeRange, toBucketStart } from '../../../shared/intervals.ts'
import { toLifetimes } from '../../../shared/registry/ends.ts'
import type { Entity, Lifetime } from '../../../shared/registry/entities.ts'
import type { Database } from '../../../shared/store/store.ts'
import type { Provider, Run } from '../../job/define-job.ts'

/** A sum per UTC day over members of the registry. */
export interface DailySum {
  /** Name of the statement in metrics and logs. */
  readonly name: string
  /** Table of the sums. */
  readonly table: string
  readonly members: DayMembers
}

/** Stored data as the source of computed datasets. */
export interface StoredSeries {
  /**
   * Computes the sums of the UTC days that the range touches. Returns only those that differ from the stored ones, so
   * that a repeated computation stores nothing. A day without members is left out, or withdrawn if it is stored.
   * @throws DataError `storage`
   */
  sumChangedDays(sum: DailySum, members: Summed, days: TimeRange, signal: AbortSignal): Promise<DailySumRow[]>
}

/** Subject of a sum: all members together, with their start and end times. */
export interface Summed extends Entity {
  readonly lifetimes: ReturnType<typeof toLifetimes>
}

export const toSummed = (all: readonly Entity[], members: readonly (Lifetime & Entity)[]): Summed[] =>
  all.map((entity) => ({ ...entity, lifetimes: toLifetimes(members) }))

/** Returns the changed days of a run. A slot computes its own day and the previous one. */
export async function sumDays(run: Run<StoredSeries, Summed>, sum: DailySum): Promise<DailySumRow[]> {
  const days = run.range ?? { from: run.slot - DAY_MS, to: run.slot + DAY_MS }
  const changed = run.entities.map((members) => run.provider.sumChangedDays(sum, members, days, run.signal))
  return (await Promise.all(changed)).flat()
}

export const storedSeries: Provider<StoredSeries, Summed> = {
  name: 'stored-series',
  cost: 'free',
  covers: () => true,
  connect: ({ db }) => ({ sumChangedDays: (...args) => sumChangedDays(db, ...args) }),
}

function sumChangedDays(db: Database, sum: DailySum, { lifetimes }: Summed, days: TimeRange, signal: AbortSignal) {
  const params = { ...lifetimes, from: toBucketStart(days.from, '1d'), to: toBucketStart(days.to - 1, '1d') + DAY_MS }
  return db.rows({ name: sum.name, sql: toChangesSql(sum), params, schema: dailySumRow, signal })
}

// Values are added as decimals: a float sum depends on the order in which rows are read, and must not make a day look
// changed. A day present on only one side has a count of 0 on the other. The version is the time before the read.
const toChangesSql = ({ table, members }: DailySum) => `
SELECT toDateTime64(day, 3, 'UTC') AS recorded_at, anyIf(value, is_new) AS value_usd, anyIf(count, is_new) AS member_count,
  now64(3, 'UTC') AS computed_at, toUInt8(member_count = 0) AS withdrawn
FROM
(
  SELECT day, toFloat64(sum(toDecimal256(usd, 12))) AS value, count() AS count, true AS is_new
  FROM (${members()})
  GROUP BY day
  UNION ALL
  SELECT toDateTime(recorded_at, 'UTC') AS day, value_usd AS value, member_count AS count, false AS is_new
  FROM ${table} FINAL
  WHERE ${withinDays('recorded_at')}
)
GROUP BY day
HAVING anyIf(count, is_new) != anyIf(count, NOT is_new) OR anyIf(value, is_new) != anyIf(value, NOT is_new)
ORDER BY day`
