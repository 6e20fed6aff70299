import { z } from 'zod'
import { toUnitMs, toUnitTimes } from '../buckets.ts'
import type { TimeRange } from '../intervals.ts'
import type { Database } from '../store/clickhouse.ts'
import type { LedgerDataset } from './ledger.ts'

type Computed = Pick<LedgerDataset, 'name' | 'cadence'>

const toSeconds = (ms: number) => Math.floor(ms / 1000)

/** See `Ledger.noteStored`. */
export async function noteStored(db: Database, computed: Computed, ranges: readonly TimeRange[]): Promise<void> {
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

/** See `Ledger.noteComputed`. */
export async function noteComputed(db: Database, computed: Computed, range: TimeRange, readAt: number): Promise<void> {
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

/** See `Ledger.dueUnits`. */
export async function readDueUnits(db: Database, computed: Computed, settleMs: number): Promise<TimeRange[]> {
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
