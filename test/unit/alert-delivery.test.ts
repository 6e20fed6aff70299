import { describe, expect, it } from 'vitest'
import { HOUR_MS } from '../../shared/intervals.ts'
import { toPauseMs } from '../../workers/alerts/delivery.ts'

describe('toPauseMs', () => {
  it('triples the wait with each failure, up to four hours', () => {
    const waits = [1, 2, 3, 9, 1_000].map((attempts) => toPauseMs(attempts, undefined, 0))
    expect(waits).toEqual([5_000, 15_000, 45_000, 4 * HOUR_MS, 4 * HOUR_MS])
  })

  it('shortens the wait by up to a fifth, but never below the wait that the receiver asked for', () => {
    expect(toPauseMs(1, undefined, 1)).toBe(4_000)
    expect(toPauseMs(1, 60_000, 1)).toBe(60_000)
    expect(toPauseMs(1, 1, 0)).toBe(5_000)
  })
})
