import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createHourLimit } from '../../workers/http/limits.ts'

const never = new AbortController().signal

describe('createHourLimit', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('grants the requests of one hour without delay, and rejects the next with its wait', async () => {
    const limit = createHourLimit('provider', 3)
    for (let n = 0; n < 3; n += 1) await limit.take(never)
    await vi.advanceTimersByTimeAsync(20 * 60_000)
    const error = await limit.take(never).catch((reason: unknown) => reason)
    expect(error).toMatchObject({
      code: 'provider_exhausted',
      message: 'provider: its 3 requests of an hour are used up',
      retryAfterMs: 40 * 60_000 + 1_000,
    })
  })

  it('never grants more in any hour', async () => {
    const limit = createHourLimit('provider', 5)
    const grantedAt: number[] = []
    for (let minute = 0; minute < 300; minute += 1) {
      const taken = limit.take(never).then(() => grantedAt.push(performance.now()))
      await Promise.all([taken.catch(() => undefined), vi.advanceTimersByTimeAsync(60_000)])
    }
    for (const start of grantedAt) {
      expect(grantedAt.filter((at) => at >= start && at < start + 3_600_000).length).toBeLessThanOrEqual(5)
    }
    expect(grantedAt.length).toBeGreaterThanOrEqual(20)
  })

  it('waits if less than a minute is missing, unless it is aborted', async () => {
    const limit = createHourLimit('provider', 1)
    await limit.take(never)
    await vi.advanceTimersByTimeAsync(59.5 * 60_000)
    const controller = new AbortController()
    const aborted = limit.take(controller.signal)
    const taken = limit.take(never)
    controller.abort(new Error('stop'))
    await expect(aborted).rejects.toThrow('stop')
    await vi.advanceTimersByTimeAsync(31_000)
    await taken
    await expect(limit.take(AbortSignal.abort(new Error('stop')))).rejects.toThrow('stop')
  })
})
