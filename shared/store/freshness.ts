import { z } from 'zod'
import type { DatasetFacts } from '../datasets/list.ts'
import { type Cadence, INTERVAL_SECONDS } from '../intervals.ts'
import type { Database } from './clickhouse.ts'

export const FRESHNESS_STATES = ['fresh', 'late', 'stale', 'empty'] as const
export type FreshnessState = (typeof FRESHNESS_STATES)[number]

/** Data older than this many cadences has missed a slot by more than the time that its job takes. */
export const LATE_AFTER_CADENCES = 1.5

/** Data is stale once it is older than this many cadences (docs/contract.md, section 6). */
const STALE_AFTER_CADENCES = 2

/** From when on data of a time counts as stale, both in Unix milliseconds. */
export function toStaleAt(asOf: number, { cadence }: Pick<DatasetFacts, 'cadence'>): number {
  return asOf + STALE_AFTER_CADENCES * INTERVAL_SECONDS[cadence] * 1000
}

/**
 * How a dataset stands whose newest datum is so many seconds old; null is a dataset without any. One that has lost entities
 * is not fresh, however new the data of the others is.
 */
export function toFreshnessState(lagSeconds: number | null, cadence: Cadence, lost = 0): FreshnessState {
  if (lagSeconds === null) return 'empty'
  const cadences = lagSeconds / INTERVAL_SECONDS[cadence]
  if (cadences > STALE_AFTER_CADENCES) return 'stale'
  return cadences > LATE_AFTER_CADENCES || lost > 0 ? 'late' : 'fresh'
}

/** Age of a datum of the time `newest`, both in Unix milliseconds, in seconds; null where there is none. */
export function toLagSeconds(newest: number | null, now: number): number | null {
  return newest === null ? null : Math.max(0, (now - newest) / 1000)
}

const newestStored = z.object({ newest: z.number().nullable() })

/** The time of a dataset's newest stored datum in Unix milliseconds, null where it has none. Reads one column. */
export async function readNewest(db: Database, { series }: Pick<DatasetFacts, 'series'>): Promise<number | null> {
  const { table, time } = series
  const [row] = await db.rows({
    name: 'newest-stored',
    sql: `SELECT if(count() = 0, NULL, toUnixTimestamp64Milli(toDateTime64(max(${time}), 3))) AS newest FROM ${table}`,
    schema: newestStored,
  })
  return row?.newest ?? null
}
