import { toBuckets, toStepSeconds } from '../../shared/coverage/grid.ts'
import { readMissing } from '../../shared/coverage/ledger.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { JobPayload } from '../../shared/queue/queues.ts'
import { groupByEnd } from '../../shared/registry/ends.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Entity, Job } from '../job/define-job.ts'

/**
 * Returns the entities that a run still has to collect: those with missing buckets in the range at its step, or without
 * data for the slot.
 * Three kinds of run keep all entities:
 * - computed datasets, because their inputs may have changed;
 * - resuming jobs, because they fetch new data;
 * - slots whose rows carry the sources' own times, because the bucket is not known in advance.
 */
export async function narrow(
  db: Database,
  job: Job,
  payload: JobPayload,
  entities: readonly Entity[],
): Promise<readonly Entity[]> {
  const { cadence } = job.dataset
  const isOpen = job.computedFrom.length > 0 || (payload.kind === 'slot' && (job.resumes || job.dataset.hasOwnTimes))
  if (isOpen || payload.again) return entities
  const range = payload.kind === 'range' ? payload : { from: payload.slot, to: payload.slot + 1 }
  const seconds = payload.kind === 'range' ? toStepSeconds(payload.interval, cadence) : INTERVAL_SECONDS[cadence]
  const open = new Set<number>()
  for (const part of groupByEnd(entities, range)) {
    const wanted = toBuckets(part.range, cadence)
    const keys = part.entities.map(({ key }) => key)
    const lacking = wanted && (await readMissing(db, job.dataset, keys, { wanted: [wanted], seconds }))
    for (const key of lacking?.keys() ?? keys) open.add(key)
  }
  return entities.filter(({ key }) => open.has(key))
}
