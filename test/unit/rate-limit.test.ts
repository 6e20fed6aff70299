import { setMaxListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createRateLimit } from '../../workers/http/limits.ts'

const never = new AbortController().signal
setMaxListeners(0, never)

describe('createRateLimit', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it.each([1, 2, 3, 30, 600])('grants at most %i requests in any minute, and nearly that number', async (perMinute) => {
    const limit = createRateLimit('provider', perMinute)
    const startedAt = performance.now()
    const grantedAt: number[] = []
    for (let n = 0; n < perMinute * 4; n += 1) {
      void limit.take(never).then(() => grantedAt.push(performance.now() - startedAt))
    }
    await vi.advanceTimersByTimeAsync(180_000 - 1)
    for (const start of grantedAt) {
      const inMinute = grantedAt.filter((at) => at >= start && at < start + 60_000)
      expect(inMinute.length).toBeLessThanOrEqual(perMinute)
    }
    expect(grantedAt.length).toBeGreaterThanOrEqual(Math.floor(perMinute * 3 * 0.8))
  })

  it('grants at most four requests in any second with a burst of one and 200 per minute', async () => {
    const limit = createRateLimit('provider', 200, { burst: 1 })
    const grantedAt: number[] = []
    for (let n = 0; n < 200; n += 1) void limit.take(never).then(() => grantedAt.push(performance.now()))
    await vi.advanceTimersByTimeAsync(60_000)
    for (const start of grantedAt)
      expect(grantedAt.filter((at) => at >= start && at < start + 1_000).length).toBeLessThanOrEqual(4)
    expect(grantedAt.length).toBeGreaterThan(190)
  })

  it.each([10, 60])('counts the cost of requests: batches of %i', async (cost) => {
    const perMinute = 300
    const limit = createRateLimit('provider', perMinute)
    const startedAt = performance.now()
    const grants: { at: number; cost: number }[] = []
    const take = (each: number) =>
      limit.take(never, each).then(() => grants.push({ at: performance.now() - startedAt, cost: each }))
    for (let remaining = perMinute * 4; remaining > 0; remaining -= cost + 1) void [take(cost), take(1)]
    await vi.advanceTimersByTimeAsync(180_000 - 1)
    for (const { at: start } of grants) {
      const inMinute = grants.filter(({ at }) => at >= start && at < start + 60_000)
      expect(inMinute.reduce((sum, each) => sum + each.cost, 0)).toBeLessThanOrEqual(perMinute)
    }
    expect(grants.reduce((sum, each) => sum + each.cost, 0)).toBeGreaterThanOrEqual(perMinute * 3 * 0.8)
  })

  it('grants a request that costs more than a burst, and delays the next one', async () => {
    const limit = createRateLimit('provider', 10)
    await limit.take(never, 9)
    let isServed = false
    void limit.take(never).then(() => {
      isServed = true
    })
    await vi.advanceTimersByTimeAsync(50_000)
    expect(isServed).toBe(false)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(isServed).toBe(true)
  })

  it('grants in the order of requests', async () => {
    const limit = createRateLimit('provider', 2)
    const order: number[] = []
    for (const n of [1, 2, 3]) void limit.take(never).then(() => order.push(n))
    await vi.advanceTimersByTimeAsync(120_000)
    expect(order).toEqual([1, 2, 3])
  })

  it('grants the place of an aborted request to the next one', async () => {
    const limit = createRateLimit('provider', 1)
    await limit.take(never)
    const controller = new AbortController()
    const aborted = limit.take(controller.signal)
    let isServed = false
    void limit.take(never).then(() => {
      isServed = true
    })
    controller.abort(new Error('stop'))
    await expect(aborted).rejects.toThrow('stop')
    await vi.advanceTimersByTimeAsync(60_000)
    expect(isServed).toBe(true)
  })

  it('rejects a signal that is already aborted', async () => {
    await expect(createRateLimit('provider', 1).take(AbortSignal.abort(new Error('stop')))).rejects.toThrow('stop')
  })
})
