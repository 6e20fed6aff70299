import { z } from 'zod'
import { type DatasetFacts, datasets } from '../datasets/list.ts'
import { type Cadence, INTERVAL_SECONDS } from '../intervals.ts'
import { parseStored } from '../json.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Database } from './clickhouse.ts'
import { probe } from './probe.ts'

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

/**
 * Resolves with the milliseconds by which this machine's clock is ahead of ClickHouse's, 0 for less than the shortest
 * cadence. Rejects with DataError `storage` when the database does not answer in time, or lacks a table.
 */
export type Readiness = () => Promise<number>

const PROBE_TIMEOUT_MS = 3_000
/** Load balancers and orchestrators ask every few seconds each. */
const HOLDS_MS = 2_000
/** A clock that is further ahead than the shortest cadence makes fresh data look stale. */
const MOST_AHEAD_MS = INTERVAL_SECONDS['5m'] * 1000

/** Names every table and reads none of them. */
const SQL = [
  'SELECT toUnixTimestamp64Milli(now64(3)) AS now',
  ...['tokens', ...datasets.map((dataset) => dataset.series.table)].map(
    (table) => `SELECT toInt64(1) AS now FROM ${table} WHERE 0`,
  ),
].join(' UNION ALL ')

const answer = z.object({ now: z.int() })

interface ReadinessOptions {
  /** The milliseconds that have passed since some moment: a database can go away while the clock of the data stands still. */
  readonly passed: () => number
  /** This machine's clock, in Unix milliseconds. */
  readonly local: () => number
  readonly log: Logger
}

/**
 * Whether the database can serve: one statement, which all who ask meanwhile and for some seconds after share. It takes
 * none of the places in which answers are made, and no connection that they wait for. `now` is this machine's clock less
 * what the last answer showed it to be ahead: the age of data is judged by the clock of those who stored it.
 */
export function createReadiness(
  db: Database,
  { passed, local, log }: ReadinessOptions,
): { readonly readiness: Readiness; readonly now: () => number } {
  let knownUntil = Number.NEGATIVE_INFINITY
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
  const ask = async () => {
    try {
      const before = local()
      const told = await probe(db, { sql: SQL, signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) })
      // Not later than the server's time, so that a slow answer is not taken for a clock that is ahead.
      const time = parseStored(answer, told)?.now
      if (time !== undefined) note(before - time)
      knownUntil = passed() + HOLDS_MS
    } finally {
      asking = undefined
    }
  }
  return {
    readiness: async () => {
      if (passed() >= knownUntil) {
        asking ??= ask()
        await asking
      }
      return ahead
    },
    now: () => local() - ahead,
  }
}
