import type { Redis } from 'ioredis'

/**
 * Removes every key that begins with the prefix, as an emptied Redis does. One script: a job that moved between two
 * commands would leave an entry of a list without its data.
 */
export async function emptyRedis(redis: Redis, prefix: string): Promise<void> {
  const script = "for _, key in ipairs(redis.call('keys', ARGV[1])) do redis.call('del', key) end"
  await redis.eval(script, 0, `${prefix}*`)
}
