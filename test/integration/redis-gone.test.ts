import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createQueue } from '../../shared/queue/queues.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { createQueueMetrics } from '../../workers/monitoring/queue-metrics.ts'
import { createTestConfig } from '../support/database.ts'
import { startRedisDoor } from '../support/redis-door.ts'
import { silent } from '../support/silent.ts'

const { url, prefix } = createTestConfig().redis
let door: Awaited<ReturnType<typeof startRedisDoor>>
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  door = await startRedisDoor(url)
})
afterEach(async () => {
  vi.useRealTimers()
  await door.close()
})

function connectTo(use: 'commands' | 'blocking') {
  const redis = createRedis(door.url, silent, use)
  onTestFinished(() => redis.disconnect())
  return redis
}

/** Commands that are in flight when the machine vanishes. */
async function vanishBefore<T>(request: () => Promise<T>) {
  const before = door.swallowed()
  door.vanish()
  const pending = request()
  await expect.poll(() => door.swallowed()).toBeGreaterThan(before)
  return { pending }
}

describe.each([
  ['commands', 20_000],
  ['blocking', 30_000],
] as const)('Redis connection for %s', (use, patienceMs) => {
  it('closes after a timeout without a reply, and resends commands when Redis is back', async () => {
    const redis = connectTo(use)
    await redis.ping()
    const closed = new Promise((resolve) => redis.once('close', resolve))
    const { pending } = await vanishBefore(() => redis.ping())
    vi.advanceTimersByTime(patienceMs)
    await closed
    door.comeBack()
    await vi.runOnlyPendingTimersAsync()
    expect(await pending).toBe('PONG')
  })
})

describe('queue metrics', () => {
  it('are missing while Redis is unavailable, and all others are present', async () => {
    const redis = connectTo('commands')
    const registry = createMetrics('test')
    const lines: string[] = []
    const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line).msg) })
    const queue = createQueue('prices', redis, prefix)
    createQueueMetrics([queue], registry, log)
    expect(await registry.metrics()).toMatch(/^queue_jobs\{dataset="prices",lane="live",state="waiting",.*\} 0$/m)
    const readLate = async () => {
      const { pending } = await vanishBefore(() => registry.metrics())
      await vi.advanceTimersByTimeAsync(2_000)
      return pending
    }
    const text = await readLate()
    expect(text).not.toMatch(/^queue_(jobs|oldest_job_age_seconds)\{/m)
    expect(text).toMatch(/^process_start_time_seconds/m)
    expect(lines).toEqual(['the queues cannot be read: their metrics are absent'])
    door.comeBack()
    await vi.advanceTimersByTimeAsync(20_000)
    await expect.poll(() => registry.metrics()).toMatch(/^queue_jobs\{dataset="prices"/m)
    expect(lines).toHaveLength(1)
    await queue.close()
  })
})
