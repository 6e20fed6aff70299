import { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Job } from '../../workers/job/define-job.ts'
import { toClock, toSlotTime } from './slot-clock.ts'

const filled = z.object({ entity: z.number(), slots: z.array(z.number()) })

/**
 * The slots of the dataset's cadence that contain each entity's rows, from `from` on and before `to` (Unix milliseconds), in
 * order: a slot with two rows appears twice.
 */
export async function readSlots(
  db: Database,
  { series, cadence }: DatasetFacts,
  { from, to }: { from: number; to: number },
): Promise<ReadonlyMap<number, readonly number[]>> {
  const { table, time, entity = 'toUInt64(0)' } = series
  const sql = `
SELECT ${entity} AS entity,
  arraySort(groupArray(intDiv(toUnixTimestamp64Milli(toDateTime64(${time}, 3)), {step: Int64}) * {step: Int64})) AS slots
FROM ${table} FINAL
WHERE ${time} >= fromUnixTimestamp64Milli({from: Int64}) AND ${time} < fromUnixTimestamp64Milli({to: Int64})
GROUP BY entity`
  const params = { from, to, step: INTERVAL_SECONDS[cadence] * 1000 }
  const rows = await db.rows({ name: 'stored-slots', sql, params, schema: filled })
  return new Map(rows.map(({ entity, slots }) => [entity, slots]))
}

/**
 * The slot numbers of each entity's rows of a job, in order, up to the slot before `end`: a slot with two rows appears twice.
 * Slot -1 is the one before the first.
 */
export async function readSlotNumbers(db: Database, job: Job, end: number): Promise<number[][]> {
  const clock = toClock(job)
  const [first, next] = [toSlotTime(clock, 0), toSlotTime(clock, 1)]
  const slots = await readSlots(db, job.dataset, { from: 2 * first - next, to: toSlotTime(clock, end) })
  return [...slots.values()].map((each) => each.map((at) => (at - first) / (next - first)))
}

/** Columns with the time of collection, which differ between two runs. */
const WHEN_COLLECTED = 'version, rank, collected_at'

/**
 * How many rows of a table are in only one of two databases, ignoring their time of collection; `where` selects the compared
 * rows.
 */
export async function countUnlike(db: Database, databases: readonly [string, string], table: string, where = '1') {
  const [one, second] = databases.map(
    (database) => `SELECT * EXCEPT (${WHEN_COLLECTED}) FROM ${database}.${table} FINAL WHERE ${where}`,
  )
  const sql = `SELECT toUInt32(count()) AS n, toUInt32((SELECT count() FROM (${one}))) AS of FROM
    ((${one} EXCEPT ${second}) UNION ALL (${second} EXCEPT ${one}))`
  const [row] = await db.rows({ name: 'unlike', sql, schema: z.object({ n: z.number(), of: z.number() }) })
  return { unlike: row?.n, of: row?.of }
}
