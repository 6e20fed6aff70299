import { EVERYBODY } from '../../shared/coverage/wanted.ts'
import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { toMs } from '../../shared/memo.ts'
import { toQueueName } from '../../shared/queue/queues.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Job } from '../job/define-job.ts'

/** The first and the last time of each entity's rows, in Unix milliseconds. */
function toRanges(dataset: Dataset, rows: readonly object[]): Map<number, { from: number; to: number }> {
  const ranges = new Map<number, { from: number; to: number }>()
  for (const row of rows) {
    const entity = dataset.entity === undefined ? EVERYBODY : Number(Reflect.get(row, dataset.entity))
    const at = toMs(String(Reflect.get(row, dataset.series.time)))
    if (Number.isNaN(at)) continue
    const known = ranges.get(entity) ?? { from: at, to: at }
    ranges.set(entity, { from: Math.min(known.from, at), to: Math.max(known.to, at) })
  }
  return ranges
}

/**
 * Notes that a job of the history lane stored rows of the past, for `/data/changes`. Called after the insert: what is noted
 * is there to be read.
 * @throws DataError `storage` when it could not be noted; the job is then tried again.
 */
export async function noteChange(
  { db, now }: { readonly db: Database; readonly now: () => number },
  { name, dataset }: Job,
  rows: readonly object[],
): Promise<void> {
  const changed_at = new Date(now()).toISOString()
  const changed = [...toRanges(dataset, rows)].map(([entity, { from, to }]) => ({
    dataset: dataset.name,
    entity,
    job: toQueueName(name, 'history'),
    begins_at: new Date(from).toISOString(),
    ends_at: new Date(to + 1).toISOString(),
    changed_at,
  }))
  if (changed.length > 0) await db.insert({ table: 'history_changes', rows: changed })
}
