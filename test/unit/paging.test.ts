import { describe, expect, it } from 'vitest'
import { toBatches } from '../../shared/group-by.ts'
import { countSteps, thin, toPages } from '../../workers/providers/paging.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

describe('toPages', () => {
  it('covers the range without gaps or overlaps', () => {
    expect(toPages({ from: 0, to: 25, interval: '5m' }, 10)).toEqual([
      { from: 0, to: 10, interval: '5m' },
      { from: 10, to: 20, interval: '5m' },
      { from: 20, to: 25, interval: '5m' },
    ])
    expect(toPages({ from: 0, to: 20, interval: '5m' }, 10)).toHaveLength(2)
    expect(toPages({ from: 5, to: 9, interval: '1d' }, Number.POSITIVE_INFINITY)).toEqual([
      { from: 5, to: 9, interval: '1d' },
    ])
    expect(toPages({ from: 5, to: 5, interval: '1d' }, 10)).toEqual([])
  })
})

describe('countSteps', () => {
  it('counts a partial step', () => {
    expect(countSteps({ from: 0, to: DAY, interval: '1h' })).toBe(24)
    expect(countSteps({ from: 0, to: DAY + 1, interval: '1h' })).toBe(25)
    expect(countSteps({ from: 0, to: 0, interval: '1h' })).toBe(0)
  })
})

describe('thin', () => {
  const timeOf = (ms: number) => ms

  it('keeps the first point of each bucket in the range, oldest first', () => {
    const times = [HOUR + 9, HOUR + 5, -1, 0, 4, 3 * HOUR, 2 * HOUR]
    expect(thin(times, timeOf, { from: 0, to: 3 * HOUR, interval: '1h' })).toEqual([0, HOUR + 5, 2 * HOUR])
  })

  it('keeps points coarser than the interval', () => {
    expect(thin([0, DAY, 2 * DAY], timeOf, { from: 0, to: 3 * DAY, interval: '5m' })).toEqual([0, DAY, 2 * DAY])
  })
})

describe('toBatches', () => {
  it('keeps the order and all elements', () => {
    expect(toBatches([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]])
    expect(toBatches([], 2)).toEqual([])
  })
})
