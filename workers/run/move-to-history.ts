import { askRedis } from '../../shared/queue/ask-redis.ts'
import type { Queued } from '../../shared/queue/job-notes.ts'
import type { DatasetQueue, RangePayload } from '../../shared/queue/queues.ts'

/**
 * Moves ranges that older versions enqueued in the live queue to the history queue, so they do not occupy capacity for
 * slots. Idempotent: a range keeps its id.
 * @throws DataError `storage`
 */
export async function moveToHistory(history: DatasetQueue, queued: Queued, payload: RangePayload): Promise<void> {
  const { id, name, opts } = queued
  // Ids numbered by BullMQ may already exist in the history queue, so they get a prefix that no other id has.
  const jobId = id !== undefined && /^\d+$/.test(id) ? `live.${id}` : id
  const { priority } = opts
  const options = { ...(jobId === undefined ? {} : { jobId }), ...(priority === undefined ? {} : { priority }) }
  await askRedis('the history queue', () => history.add(name, payload, options))
}
