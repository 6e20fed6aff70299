import { z } from 'zod'
import type { DatasetFacts } from '../datasets/define-dataset.ts'
import { datasets } from '../datasets/list.ts'
import { type Cadence, INTERVAL_SECONDS } from '../intervals.ts'
import { parseStored } from '../json.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Database } from './clickhouse.ts'
import { probe } from './probe.ts'

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
 * The freshness of a dataset by the age of its newest datum; null is an empty dataset. A dataset with overdue entities
 * is never fresh.
 */
export function toFreshnessState(lagSeconds: number | null, cadence: Cadence, overdue = 0): FreshnessState {
  if (lagSeconds === null) return 'empty'
  const cadences = lagSeconds / INTERVAL_SECONDS[cadence]
  if (cadences > STALE_AFTER_CADENCES) return 'stale'
  return cadences > LATE_AFTER_CADENCES || overdue > 0 ? 'late' : 'fresh'
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

/**
 * Resolves with the milliseconds by which this machine's clock is ahead of ClickHouse's, 0 for less than the shortest
 * cadence. Rejects with DataError `storage` if the database does not respond in time or lacks a table.
 */
export type Readiness = () => Promise<number>

const PROBE_TIMEOUT_MS = 3_000
/** Cache time of a result. Several load balancers and orchestrators poll every few seconds. */
const HOLDS_MS = 2_000
/** A clock that is further ahead than the shortest cadence makes fresh data look stale. */
const MOST_AHEAD_MS = INTERVAL_SECONDS['5m'] * 1000

/** Names every table without reading any. */
const SQL = [
  'SELECT toUnixTimestamp64Milli(now64(3)) AS now',
  ...['tokens', ...datasets.map((dataset) => dataset.series.table)].map(
    (table) => `SELECT toInt64(1) AS now FROM ${table} WHERE 0`,
  ),
].join(' UNION ALL ')

const answer = z.object({ now: z.int() })

interface ReadinessOptions {
  /** A monotonic clock in milliseconds, independent of the wall clock. */
  readonly passed: () => number
  /** Reads the clock of this machine, in Unix milliseconds. */
  readonly local: () => number
  readonly log: Logger
}

/**
 * Checks whether the database can serve: one statement, shared by all callers during it and for two seconds after. The
 * check uses none of the slots and connections of regular queries. `now` is this machine's clock, corrected by its lead
 * over ClickHouse's at the last check, because that clock stamped the data.
 */
export function createReadiness(
  db: Database,
  { passed, local, log }: ReadinessOptions,
): { readonly readiness: Readiness; readonly now: () => number } {
  let validUntil = Number.NEGATIVE_INFINITY
  let asking: Promise<void> | undefined
  let ahead = 0
  const note = (found: number) => {
    const isAhead = found > MOST_AHEAD_MS
    const seconds = Math.round(found / 1000)
    if (isAhead && ahead === 0)
      log.error(
        { aheadMs: found },
        `this machine's clock is ${seconds} s ahead of ClickHouse's: check its time service`,
      )
    if (!isAhead && ahead > 0) log.info("this machine's clock agrees with ClickHouse's again")
    ahead = isAhead ? found : 0
  }
  const check = async () => {
    try {
      const before = local()
      const result = await probe(db, { sql: SQL, signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) })
      // Uses the time before the request, so that a slow response does not look like a lead.
      const time = parseStored(answer, result)?.now
      if (time !== undefined) note(before - time)
      validUntil = passed() + HOLDS_MS
    } finally {
      asking = undefined
    }
  }
  return {
    readiness: async () => {
      if (passed() >= validUntil) {
        asking ??= check()
        await asking
      }
      return ahead
    },
    now: () => local() - ahead,
  }
}
