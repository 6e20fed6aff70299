import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { startTicks } from '../../workers/monitoring/ticks.ts'
import { silent } from '../support/silent.ts'

const SECOND = 1_000
const HOUR = 3_600_000
const START = Date.UTC(2026, 4, 6, 12)

describe('startTicks', () => {
  beforeEach(() => {
    const toFake = ['Date', 'performance', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] as const
    vi.useFakeTimers({ now: START, toFake: [...toFake] })
  })
  afterEach(() => {
    vi.restoreAllMocks()
    vi.useRealTimers()
  })

  /** Counts the ticks of the next minute. */
  async function countMinute(started: () => number): Promise<number> {
    const before = started()
    await vi.advanceTimersByTimeAsync(60 * SECOND)
    return started() - before
  }

  it.each([
    ['back', -2 * HOUR],
    ['ahead', 2 * HOUR],
  ])('continues when the clock is moved two hours %s', async (_, step) => {
    const warn = vi.spyOn(silent, 'warn')
    let started = 0
    const ticks = startTicks('*/5 * * * * *', async () => void started++, silent)
    expect(await countMinute(() => started)).toBe(12)
    vi.setSystemTime(Date.now() + step)
    expect(await countMinute(() => started)).toBeGreaterThanOrEqual(11)
    expect(warn).toHaveBeenCalledOnce()
    expect(warn).toHaveBeenCalledWith(expect.objectContaining({ movedMs: step }), expect.any(String))
    await ticks.stop()
    expect(await countMinute(() => started)).toBe(0)
  })

  it('runs one tick at a time, also after clock changes, and stops after the last one has finished', async () => {
    let end = () => {}
    const tick = vi.fn(
      () =>
        new Promise<void>((resolve) => {
          end = resolve
        }),
    )
    const ticks = startTicks('*/5 * * * * *', tick, silent)
    await vi.advanceTimersByTimeAsync(10 * SECOND)
    vi.setSystemTime(START)
    await vi.advanceTimersByTimeAsync(10 * SECOND)
    let isStopped = false
    const stopping = ticks.stop().then(() => {
      isStopped = true
    })
    await vi.advanceTimersByTimeAsync(10 * SECOND)
    expect(isStopped).toBe(false)
    end()
    await stopping
    expect(tick).toHaveBeenCalledOnce()
  })
})
