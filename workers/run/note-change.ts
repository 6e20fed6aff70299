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
 * The buckets of each entity's rows before `end`, in Unix milliseconds: from the start of the first one to the end of the last, so
 * that a series that is read again from there on has them.
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

/** By one clock, the engine's, and later than whatever was noted, so that whoever reads on from there finds it. */
const NEXT =
  'SELECT toUnixTimestamp64Milli(greatest(now64(3), max(changed_at) + toIntervalMillisecond(1))) AS at FROM history_changes'

const moment = z.object({ at: z.int() })

/**
 * Notes that a job of the history lane stored rows of the past, for `/data/changes`. Called after the insert: what is noted
 * is there to be read.
 * @throws DataError `storage` when it could not be noted; the job is then tried again.
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
