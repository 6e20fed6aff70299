import type { Redis } from 'ioredis'
import type { DatasetQueue } from './queues.ts'

/** Longer than any command waits for a job. */
const EXPIRE_SECONDS = 86_400

const toKey = (queue: DatasetQueue) => queue.toKey('dropped')

/**
 * Records that an operator drops jobs. A job that is missing without this note was lost with its queue; commands that
 * wait for it enqueue it again.
 */
export async function noteDropped(redis: Redis, queue: DatasetQueue, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await redis.hset(toKey(queue), Object.fromEntries(ids.map((id) => [id, '1'])))
  await redis.expire(toKey(queue), EXPIRE_SECONDS)
}

/** Returns the ids of dropped jobs. */
export async function readDropped(redis: Redis, queue: DatasetQueue, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set()
  const found = await redis.hmget(toKey(queue), ...ids)
  return new Set(ids.filter((_, index) => found[index] !== null))
}

export async function forgetDropped(redis: Redis, queue: DatasetQueue, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await redis.hdel(toKey(queue), ...ids)
}
