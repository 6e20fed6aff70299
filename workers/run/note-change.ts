import { z } from 'zod'
import { EVERYBODY, toDueEnd } from '../../shared/coverage/wanted.ts'
import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { DataError } from '../../shared/errors.ts'
import { INTERVAL_SECONDS, type TimeRange, toBucketStart } from '../../shared/intervals.ts'
import { toMs } from '../../shared/memo.ts'
import { toQueueName } from '../../shared/queue/queues.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Job } from '../job/define-job.ts'

/**
 * Returns per entity the time range of the rows before `end` (Unix milliseconds). It spans whole buckets, so a series
 * that is re-read from its start includes every changed row.
 */
function toRanges(dataset: Dataset, rows: readonly object[], end: number): Map<number, TimeRange> {
  const { cadence } = dataset
  const ranges = new Map<number, TimeRange>()
  for (const row of rows) {
    const entity = dataset.entity === undefined ? EVERYBODY : Number(Reflect.get(row, dataset.entity))
    const at = toMs(String(Reflect.get(row, dataset.series.time)))
    if (Number.isNaN(at) || at >= end) continue
    const from = toBucketStart(at, cadence)
    const to = from + INTERVAL_SECONDS[cadence] * 1000
    const known = ranges.get(entity) ?? { from, to }
    ranges.set(entity, { from: Math.min(known.from, from), to: Math.max(known.to, to) })
  }
  return ranges
}

/**
 * Uses the clock of ClickHouse only, and is greater than every stored `changed_at`. Readers that continue from their
 * last change therefore find the new one.
 */
const NEXT =
  'SELECT toUnixTimestamp64Milli(greatest(now64(3), max(changed_at) + toIntervalMillisecond(1))) AS at FROM history_changes'

const moment = z.object({ at: z.int() })

/**
 * Records for `/data/changes` that a job of the history queue stored rows of the past. Call after the insert, so that
 * recorded changes are readable.
 * @throws DataError `storage` if the change cannot be recorded; the job is then retried.
 */
export async function noteChange(
  { db, now }: { readonly db: Database; readonly now: () => number },
  job: Job,
  rows: readonly object[],
): Promise<void> {
  const { name, dataset } = job
  const ranges = toRanges(dataset, rows, toDueEnd(dataset, now()))
  if (ranges.size === 0) return
  const [next] = await db.rows({ name: 'next-change', sql: NEXT, schema: moment })
  if (next === undefined) throw new DataError('storage', 'ClickHouse, next-change: an answer without a row')
  const changed = [...ranges].map(([entity, { from, to }]) => ({
    dataset: dataset.name,
    entity,
    job: toQueueName(name, 'history'),
    begins_at: new Date(from).toISOString(),
    ends_at: new Date(to).toISOString(),
    changed_at: new Date(next.at).toISOString(),
  }))
  await db.insert({ table: 'history_changes', rows: changed })
}
