import type { Redis } from 'ioredis'
import type { DatasetQueue } from './queues.ts'

/** Longer than anybody waits for a job. */
const KEPT_SECONDS = 86_400

const toKey = (queue: DatasetQueue) => queue.toKey('dropped')

/**
 * Notes that an operator drops jobs. A job that is gone without this note was lost with its queue, and whoever waits for it
 * enqueues it again.
 */
export async function noteDropped(redis: Redis, queue: DatasetQueue, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await redis.hset(toKey(queue), Object.fromEntries(ids.map((id) => [id, '1'])))
  await redis.expire(toKey(queue), KEPT_SECONDS)
}

/** Those of the jobs that were dropped. */
export async function readDropped(redis: Redis, queue: DatasetQueue, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set()
  const found = await redis.hmget(toKey(queue), ...ids)
  return new Set(ids.filter((_, index) => found[index] !== null))
}

export async function forgetDropped(redis: Redis, queue: DatasetQueue, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await redis.hdel(toKey(queue), ...ids)
}
