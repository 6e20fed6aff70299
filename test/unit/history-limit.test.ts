import { setMaxListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createHistoryLimit, createRateLimit, type RateLimit } from '../../workers/http/limits.ts'

const never = new AbortController().signal
setMaxListeners(0, never)

/** The time between two requests of a limit, which is the wait of a request without others before it. */
const toIntervalMs = (perMinute: number) => 60_000 / (perMinute - Math.max(1, Math.floor(perMinute / 5)) + 1)

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Requests `count` places concurrently. Returns the times at which they were granted. */
function take(limit: RateLimit, count: number) {
  const at: number[] = []
  for (let n = 0; n < count; n += 1) void limit.take(never).then(() => at.push(performance.now()))
  return at
}

describe('createHistoryLimit', () => {
  it.each([
    [60, 30],
    [20, 10],
    [10, 9],
    [2, 1],
  ])('of %i requests a minute never grants more than %i in any minute', async (full, share) => {
    const history = take(
      createHistoryLimit(createRateLimit('provider', share), createRateLimit('provider', full)),
      share * 5,
    )
    await vi.advanceTimersByTimeAsync(4 * 60_000)
    for (const start of history)
      expect(history.filter((at) => at >= start && at < start + 60_000).length).toBeLessThanOrEqual(share)
    expect(history.length).toBeGreaterThanOrEqual(Math.floor(share * 4 * 0.8))
  })

  it.each([
    [60, 30],
    [20, 10],
    [10, 9],
    [2, 1],
  ])('delays a live request by at most one place: %i a minute, with %i for history', async (n, share) => {
    const full = createRateLimit('provider', n)
    const history = take(createHistoryLimit(createRateLimit('provider', share), full), n * 20)
    for (let round = 0; round < 20; round += 1) {
      await vi.advanceTimersByTimeAsync(17_300)
      const requestedAt = performance.now()
      const now = take(full, 1)
      await vi.advanceTimersByTimeAsync(Math.ceil(2 * toIntervalMs(n)))
      const waited = (now[0] ?? Number.POSITIVE_INFINITY) - requestedAt
      // The place of one history request, and its own.
      expect(waited).toBeLessThanOrEqual(Math.ceil(2 * toIntervalMs(n)))
      if (share <= n / 2 && n >= 10) expect(waited).toBe(0)
    }
    expect(history.length).toBeLessThan(n * 20)
  })

  it('waits for only one place of the whole limit at a time, so that live requests pass', async () => {
    const full = createRateLimit('provider', 10)
    take(full, 2)
    const history = take(createHistoryLimit(createRateLimit('provider', 10), full), 8)
    await vi.advanceTimersByTimeAsync(0)
    const now = take(full, 5)
    await vi.advanceTimersByTimeAsync(Math.ceil(6.5 * toIntervalMs(10)))
    expect([now.length, history.length]).toEqual([5, 1])
  })

  it('takes no place of the whole limit if the share is used up', async () => {
    const full = { take: vi.fn(async () => undefined) }
    const usedUp = { take: () => Promise.reject(new Error('used up')) }
    await expect(createHistoryLimit(usedUp, full).take(never)).rejects.toThrow('used up')
    expect(full.take).not.toHaveBeenCalled()
  })

  it('rejects an aborted request immediately and grants its place to the next one', async () => {
    const limit = createHistoryLimit(createRateLimit('provider', 1), createRateLimit('provider', 10))
    await limit.take(never)
    const controller = new AbortController()
    const aborted = limit.take(controller.signal)
    const next = take(limit, 1)
    controller.abort(new Error('stop'))
    await expect(aborted).rejects.toThrow('stop')
    await vi.advanceTimersByTimeAsync(60_000)
    expect(next).toHaveLength(1)
  })
})
