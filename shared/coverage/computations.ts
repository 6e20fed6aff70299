import { z } from 'zod'
import { type Cadence, HOUR_MS, INTERVAL_SECONDS, type TimeRange } from '../intervals.ts'
import type { Database } from '../store/clickhouse.ts'
import type { Covered } from './ledger.ts'

/** Length of the units in which a computed dataset is recomputed, in milliseconds: an hour, or a longer cadence. */
export const toUnitMs = (cadence: Cadence): number => Math.max(HOUR_MS, INTERVAL_SECONDS[cadence] * 1000)

const toSeconds = (ms: number) => Math.floor(ms / 1000)

/** The starts of the units that overlap a range, in Unix milliseconds. */
export function toUnitTimes({ from, to }: TimeRange, cadence: Cadence): number[] {
  const unit = toUnitMs(cadence)
  const first = Math.floor(from / unit)
  return Array.from({ length: Math.max(0, Math.ceil(to / unit) - first) }, (_, at) => (first + at) * unit)
}

/**
 * Records that inputs of these times of a computed dataset were stored. Call it after inserting the rows and before
 * completing the job, so that a computation that is lost with the queues is found by its record.
 */
export async function noteStored(db: Database, computed: Covered, ranges: readonly TimeRange[]): Promise<void> {
  if (ranges.length === 0) return
  const unit = toUnitMs(computed.cadence)
  const [from, to] = [
    ranges.map((range) => toSeconds(Math.floor(range.from / unit) * unit)),
    ranges.map((range) => toSeconds(range.to)),
  ]
  await db.command({
    name: 'note-inputs-stored',
    sql: `INSERT INTO computations (dataset, unit_at, stored_at)
SELECT DISTINCT {dataset: String}, toDateTime(at, 'UTC'), now64(3)
FROM (SELECT arrayJoin(arrayFlatten(arrayMap((a, b) -> range(a, b, {unit: UInt32}), {from: Array(UInt32)}, {to: Array(UInt32)}))) AS at)`,
    params: { dataset: computed.name, unit: toSeconds(unit), from, to },
  })
}

const clock = z.object({ now: z.int() })

/**
 * ClickHouse's time in Unix milliseconds. Comparing times of this one clock decides whether rows were stored before a
 * computation.
 */
export async function readEngineTime(db: Database): Promise<number> {
  const [row] = await db.rows({
    name: 'engine-time',
    sql: 'SELECT toUnixTimestamp64Milli(now64(3)) AS now',
    schema: clock,
  })
  return row?.now ?? 0
}

/** Records that the complete units of a range were computed from rows stored by `readAt`, in ClickHouse's time. */
export async function noteComputed(db: Database, computed: Covered, range: TimeRange, readAt: number): Promise<void> {
  const unit = toUnitMs(computed.cadence)
  const complete = { from: Math.ceil(range.from / unit) * unit, to: Math.floor(range.to / unit) * unit }
  const rows = toUnitTimes(complete, computed.cadence).map((at) => ({
    dataset: computed.name,
    unit_at: new Date(at).toISOString(),
    computed_at: new Date(readAt).toISOString(),
  }))
  if (rows.length > 0) await db.insert({ table: 'computations', rows })
}

const due = z.object({ from: z.int() })

/** The units whose inputs were stored after their computation and at least `settleMs` ago, oldest first. */
export async function readDueUnits(db: Database, computed: Covered, settleMs: number): Promise<TimeRange[]> {
  const unit = toUnitMs(computed.cadence)
  const rows = await db.rows({
    name: 'due-computations',
    sql: `SELECT toUnixTimestamp(unit_at) * 1000 AS from
FROM (SELECT unit_at, max(stored_at) AS stored, max(computed_at) AS computed FROM computations WHERE dataset = {dataset: String} GROUP BY unit_at)
WHERE stored >= computed AND stored < now64(3) - INTERVAL {settle: UInt32} MILLISECOND
ORDER BY unit_at`,
    params: { dataset: computed.name, settle: settleMs },
    schema: due,
  })
  return rows.map(({ from }) => ({ from, to: from + unit }))
}
