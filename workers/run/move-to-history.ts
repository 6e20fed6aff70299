import { askRedis } from '../../shared/queue/ask-redis.ts'
import type { Queued } from '../../shared/queue/job-notes.ts'
import type { DatasetQueue, RangePayload } from '../../shared/queue/queues.ts'

/**
 * Ranges that older versions left in the live queue go to the history queue, where they hold no place of a slot. Doing it
 * twice changes nothing: a range keeps its id.
 * @throws DataError `storage`
 */
export async function moveToHistory(history: DatasetQueue, queued: Queued, payload: RangePayload): Promise<void> {
  const { id, name, opts } = queued
  // Ids that the queue numbered itself may be taken there, and no other may look like them.
  const jobId = id !== undefined && /^\d+$/.test(id) ? `live.${id}` : id
  const { priority } = opts
  const options = { ...(jobId === undefined ? {} : { jobId }), ...(priority === undefined ? {} : { priority }) }
  await askRedis('the history queue', () => history.add(name, payload, options))
}
