import { z } from 'zod'
import type { DatasetFacts } from '../datasets/list.ts'
import { type Cadence, INTERVAL_SECONDS } from '../intervals.ts'
import type { Database } from './clickhouse.ts'

export const FRESHNESS_STATES = ['fresh', 'late', 'stale', 'empty'] as const
export type FreshnessState = (typeof FRESHNESS_STATES)[number]

/** Data is late beyond this age in cadences: it has missed a slot by more than the duration of a job. */
export const LATE_AFTER_CADENCES = 1.5

/** Data is stale beyond this age in cadences (docs/contract.md, section 6). */
const STALE_AFTER_CADENCES = 2

/** The time at which data becomes stale. Both times are Unix milliseconds. */
export function toStaleAt(asOf: number, { cadence }: Pick<DatasetFacts, 'cadence'>): number {
  return asOf + STALE_AFTER_CADENCES * INTERVAL_SECONDS[cadence] * 1000
}

/**
 * The freshness of a dataset by the age of its newest datum; null is an empty dataset. With overdue entities (`lost`)
 * it is never fresh.
 */
export function toFreshnessState(lagSeconds: number | null, cadence: Cadence, lost = 0): FreshnessState {
  if (lagSeconds === null) return 'empty'
  const cadences = lagSeconds / INTERVAL_SECONDS[cadence]
  if (cadences > STALE_AFTER_CADENCES) return 'stale'
  return cadences > LATE_AFTER_CADENCES || lost > 0 ? 'late' : 'fresh'
}

/** Age of a datum in seconds; null without one. Times are Unix milliseconds. */
export function toLagSeconds(newest: number | null, now: number): number | null {
  return newest === null ? null : Math.max(0, (now - newest) / 1000)
}

const newestStored = z.object({ newest: z.number().nullable() })

/** The time of a dataset's newest stored datum in Unix milliseconds, null without one. Reads one column. */
export async function readNewest(db: Database, { series }: Pick<DatasetFacts, 'series'>): Promise<number | null> {
  const { table, time } = series
  const [row] = await db.rows({
    name: 'newest-stored',
    sql: `SELECT if(count() = 0, NULL, toUnixTimestamp64Milli(toDateTime64(max(${time}), 3))) AS newest FROM ${table}`,
    schema: newestStored,
  })
  return row?.newest ?? null
}
