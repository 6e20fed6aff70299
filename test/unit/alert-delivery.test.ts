import { describe, expect, it } from 'vitest'
import { HOUR_MS } from '../../shared/intervals.ts'
import { findMovement } from '../../workers/alerts/conditions/treasuries.ts'
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

describe('findMovement', () => {
  it('counts quantities at the price of the later day, not changes of prices', () => {
    expect(findMovement([['UNI', 100, 1_000]], [['UNI', 100, 9_000]], 'any')).toBeNull()
    expect(findMovement([['UNI', 100, 1_000]], [['UNI', 40, 800]], 'any')).toEqual({
      symbol: 'UNI',
      quantity: -60,
      usd: -1_200,
    })
  })

  it('finds the largest movement of a direction', () => {
    const [before, after] = [
      [
        ['A', 10, 10],
        ['B', 10, 10],
      ],
      [
        ['A', 15, 15],
        ['B', 1, 1],
        ['C', 3, 3],
      ],
    ] as [[string, number, number][], [string, number, number][]]
    expect(findMovement(before, after, 'any')).toMatchObject({ symbol: 'B', usd: -9 })
    expect(findMovement(before, after, 'in')).toMatchObject({ symbol: 'A', usd: 5 })
    expect(findMovement(after, before, 'out')).toMatchObject({ symbol: 'A', usd: -5 })
  })

  it('uses the old price of an asset that is gone, and omits assets without a price', () => {
    expect(findMovement([['A', 10, 20]], [], 'out')).toMatchObject({ usd: -20 })
    expect(findMovement([['A', 10, null]], [['A', 1, null]], 'any')).toBeNull()
  })
})
