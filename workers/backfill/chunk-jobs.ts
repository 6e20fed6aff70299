import type { Redis } from 'ioredis'
import { toBatches } from '../../shared/batches.ts'
import { forgetDropped, readDropped } from '../../shared/queue/dropped.ts'
import { type DatasetQueue, enqueueRanges } from '../../shared/queue/queues.ts'
import type { Chunk } from '../schedule/chunks.ts'

/** How many Redis commands are under way at once while jobs are looked up. */
const LOOK_UPS_AT_ONCE = 200

/** What has become of the jobs of chunks. */
export interface ChunkJobs {
  /** They wait, are worked on or are tried again later. */
  readonly open: readonly Chunk[]
  readonly done: readonly Chunk[]
  /** They failed for good. */
  readonly dead: readonly Chunk[]
  readonly dropped: readonly Chunk[]
  /** Their queue was emptied or went back to an older state, or no longer keeps them as they finished long ago. */
  readonly lost: readonly Chunk[]
}

type Fate = keyof ChunkJobs

/** Enqueues chunks. Of one that is there already, what has ended is removed first, and what is under way stays. */
export async function enqueueChunks(redis: Redis, queue: DatasetQueue, chunks: readonly Chunk[]): Promise<void> {
  for (const batch of toBatches(chunks, LOOK_UPS_AT_ONCE)) {
    const ids = batch.map(({ id }) => id)
    await forgetDropped(redis, queue, ids)
    const states = await Promise.all(ids.map((id) => queue.getJobState(id)))
    const ended = ids.filter((_, index) => states[index] === 'completed' || states[index] === 'failed')
    await Promise.all(ended.map((id) => queue.remove(id)))
    await enqueueRanges(queue, batch)
  }
}

export async function readChunkJobs(redis: Redis, queue: DatasetQueue, chunks: readonly Chunk[]): Promise<ChunkJobs> {
  const jobs: Record<Fate, Chunk[]> = { open: [], done: [], dead: [], dropped: [], lost: [] }
  for (const batch of toBatches(chunks, LOOK_UPS_AT_ONCE)) {
    const states = await Promise.all(batch.map(({ id }) => queue.getJobState(id)))
    const gone = batch.filter((_, index) => states[index] === 'unknown').map(({ id }) => id)
    const dropped = await readDropped(redis, queue, gone)
    for (const [index, chunk] of batch.entries()) jobs[toFate(states[index], dropped.has(chunk.id))].push(chunk)
  }
  return jobs
}

function toFate(state: string | undefined, isDropped: boolean): Fate {
  if (state === 'completed') return 'done'
  if (state === 'failed') return 'dead'
  if (state === 'unknown') return isDropped ? 'dropped' : 'lost'
  return 'open'
}
