import { QueueEvents } from 'bullmq'
import type { Redis } from 'ioredis'
import { toBatches } from '../../shared/group-by.ts'
import { type DatasetQueue, enqueueRanges, toQueuePrefix } from '../../shared/queue/queues.ts'
import type { Chunk } from '../../workers/schedule/chunks.ts'

export interface Outcome {
  rows: number
  /** Chunks that were finished before this run. */
  skipped: number
  /** Final failures, counted by reason. */
  failures: Map<string, number>
}

interface WatchOptions {
  blocking: Redis
  redis: Redis
  prefix: string
  /** Also collects finished chunks again. */
  again: boolean
  onStep: (rows: number) => void
}

/** Concurrent Redis commands for the job look-up. */
const MAX_LOOKUPS = 200

/**
 * Enqueues chunks and waits, by the queue's events, until each is finished or has finally failed. Skips chunks that an
 * earlier run finished, retries failed ones, and only watches active ones.
 */
export async function runChunks(
  queue: DatasetQueue,
  chunks: readonly Chunk[],
  options: WatchOptions,
): Promise<Outcome> {
  const outcome: Outcome = { rows: 0, skipped: 0, failures: new Map() }
  const pending = new Set(chunks.map(({ id }) => id))
  // QueueEvents does not close a given connection, which would keep the program alive.
  const connection = options.blocking.duplicate()
  const events = await openEvents(queue, connection, options)
  try {
    const finished = new Promise<void>((resolve) => {
      const settle = (id: string, rows: number) => {
        if (!pending.delete(id)) return
        outcome.rows += rows
        options.onStep(rows)
        if (pending.size === 0) resolve()
      }
      events.on('completed', ({ jobId, returnvalue }) => settle(jobId, toRows(returnvalue)))
      events.on('failed', ({ jobId, failedReason }) => {
        if (pending.has(jobId)) outcome.failures.set(failedReason, (outcome.failures.get(failedReason) ?? 0) + 1)
        settle(jobId, 0)
      })
      if (pending.size === 0) resolve()
      const skip = (id: string) => {
        outcome.skipped += 1
        settle(id, 0)
      }
      enqueue(queue, chunks, options.again, skip).catch((error: unknown) => events.emit('error', error as Error))
    })
    const broken = new Promise<never>((_, reject) => events.once('error', reject))
    await Promise.race([finished, broken])
  } finally {
    await events.close()
    connection.disconnect()
  }
  return outcome
}

/** Reads events from the stream's current end, so that no event between enqueueing and listening is missed. */
async function openEvents(queue: DatasetQueue, connection: Redis, options: WatchOptions): Promise<QueueEvents> {
  const prefix = toQueuePrefix(options.prefix, queue.name)
  const newest = await options.redis.xrevrange(`${prefix}:${queue.name}:events`, '+', '-', 'COUNT', 1)
  const events = new QueueEvents(queue.name, {
    connection,
    prefix,
    lastEventId: newest[0]?.[0] ?? '0-0',
  })
  await events.waitUntilReady()
  return events
}

async function enqueue(
  queue: DatasetQueue,
  chunks: readonly Chunk[],
  again: boolean,
  skip: (id: string) => void,
): Promise<void> {
  for (const batch of toBatches(chunks, MAX_LOOKUPS)) {
    const fresh = await Promise.all(
      batch.map(async (chunk) => ((await isFresh(queue, chunk.id, again, skip)) ? [chunk] : [])),
    )
    const ranges = fresh
      .flat()
      .map(({ id, payload }) => ({ id, payload: again ? { ...payload, again: true as const } : payload }))
    await enqueueRanges(queue, ranges)
  }
}

/**
 * Whether a chunk must be added. An existing one is skipped if it is complete, retried if it is a dead letter, else
 * left to its worker.
 */
async function isFresh(queue: DatasetQueue, id: string, again: boolean, skip: (id: string) => void): Promise<boolean> {
  const job = await queue.getJob(id)
  if (job === undefined) return true
  const state = await job.getState()
  if (state === 'completed' && again) {
    await job.remove()
    return true
  }
  if (state === 'completed') skip(id)
  if (state === 'failed') await job.retry('failed', { resetAttemptsMade: true })
  return state === 'unknown'
}

function toRows(returnvalue: unknown): number {
  const report: unknown = typeof returnvalue === 'string' ? JSON.parse(returnvalue) : returnvalue
  return typeof report === 'object' && report !== null && 'rows' in report ? Number(report.rows) : 0
}
