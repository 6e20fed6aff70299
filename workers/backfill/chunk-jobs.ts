import type { Redis } from 'ioredis'
import { toBatches } from '../../shared/group-by.ts'
import { forgetDropped, readDropped } from '../../shared/queue/dropped.ts'
import { type DatasetQueue, enqueueRanges } from '../../shared/queue/queues.ts'
import type { Chunk } from '../schedule/chunks.ts'

/** Number of chunk jobs looked up concurrently in Redis. */
const LOOKUPS_PER_BATCH = 200

/** Chunks by the state of their job. */
export interface ChunkJobs {
  /** Waiting, active or delayed for a retry. */
  readonly open: readonly Chunk[]
  readonly done: readonly Chunk[]
  /** Failed permanently. */
  readonly dead: readonly Chunk[]
  readonly dropped: readonly Chunk[]
  /** Not in the queue: it was emptied, was restored to an older state, or has removed old finished jobs. */
  readonly lost: readonly Chunk[]
}

type ChunkState = keyof ChunkJobs

/** Enqueues chunks. Finished jobs with the same id are removed first; unfinished ones are kept. */
export async function enqueueChunks(redis: Redis, queue: DatasetQueue, chunks: readonly Chunk[]): Promise<void> {
  for (const batch of toBatches(chunks, LOOKUPS_PER_BATCH)) {
    const ids = batch.map(({ id }) => id)
    await forgetDropped(redis, queue, ids)
    const states = await Promise.all(ids.map((id) => queue.getJobState(id)))
    const ended = ids.filter((_, index) => states[index] === 'completed' || states[index] === 'failed')
    await Promise.all(ended.map((id) => queue.remove(id)))
    await enqueueRanges(queue, batch)
  }
}

export async function readChunkJobs(redis: Redis, queue: DatasetQueue, chunks: readonly Chunk[]): Promise<ChunkJobs> {
  const jobs: Record<ChunkState, Chunk[]> = { open: [], done: [], dead: [], dropped: [], lost: [] }
  for (const batch of toBatches(chunks, LOOKUPS_PER_BATCH)) {
    const states = await Promise.all(batch.map(({ id }) => queue.getJobState(id)))
    const gone = batch.filter((_, index) => states[index] === 'unknown').map(({ id }) => id)
    const dropped = await readDropped(redis, queue, gone)
    for (const [index, chunk] of batch.entries()) jobs[toChunkState(states[index], dropped.has(chunk.id))].push(chunk)
  }
  return jobs
}

function toChunkState(state: string | undefined, isDropped: boolean): ChunkState {
  if (state === 'completed') return 'done'
  if (state === 'failed') return 'dead'
  if (state === 'unknown') return isDropped ? 'dropped' : 'lost'
  return 'open'
}
