import type { Redis } from 'ioredis'

const toKey = (prefix: string) => `${prefix}:slots`

/** The newest slot of a dataset that schedulers have enqueued, in Unix milliseconds; undefined without a record. */
export async function readRecordedSlot(redis: Redis, prefix: string, dataset: string): Promise<number | undefined> {
  const recorded = await redis.hget(toKey(prefix), dataset)
  return recorded === null ? undefined : Number(recorded)
}

export async function recordSlot(redis: Redis, prefix: string, dataset: string, slot: number): Promise<void> {
  await redis.hset(toKey(prefix), dataset, slot)
}
