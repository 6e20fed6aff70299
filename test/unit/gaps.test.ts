import { describe, expect, it } from 'vitest'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { planBackfill } from '../../workers/backfill/plan.ts'
import { toRequest } from '../../workers/commands/find-gaps.ts'
import holders from '../../workers/jobs/holders.ts'
import prices from '../../workers/jobs/prices.ts'
import tvl from '../../workers/jobs/tvl.ts'
import { type EntityGap, planRepair, toGapInterval, toGaps } from '../../workers/schedule/gaps.ts'

const STEP = 300_000
const at = (bucket: number) => bucket * STEP
const ALL = { from: 0, to: at(10_000) }

describe('toGaps', () => {
  it('counts missing buckets', () => {
    expect(toGaps([], '5m', ALL)).toEqual([])
    expect(toGaps([[at(3), at(4)]], '5m', ALL)).toEqual([{ from: at(3), to: at(4), missing: 1 }])
  })

  it('joins gaps with at most twelve buckets between them', () => {
    const gaps = toGaps(
      [
        [at(1), at(3)],
        [at(15), at(16)],
        [at(29), at(31)],
      ],
      '5m',
      ALL,
    )
    expect(gaps).toEqual([
      { from: at(1), to: at(16), missing: 3 },
      { from: at(29), to: at(31), missing: 2 },
    ])
  })

  it('limits gaps to the window, also if its bounds are not on the grid', () => {
    const holes = [
      [at(1), at(10)],
      [at(100), at(110)],
    ] as const
    expect(toGaps(holes, '5m', { from: at(5) - 1, to: at(105) })).toEqual([
      { from: at(5), to: at(10), missing: 5 },
      { from: at(100), to: at(105), missing: 5 },
    ])
    expect(toGaps(holes, '5m', { from: at(5) + 1, to: at(9) + 1 })).toEqual([{ from: at(6), to: at(10), missing: 4 }])
    expect(toGaps(holes, '5m', { from: at(20), to: at(90) })).toEqual([])
  })

  it('counts weeks from Mondays', () => {
    const monday = Date.parse('2024-05-06')
    const week = 7 * 86_400_000
    const window = { from: monday - week, to: monday + 3 * week }
    expect(toGaps([[monday, monday + week]], '7d', window)).toEqual([{ from: monday, to: monday + week, missing: 1 }])
  })
})

describe('toGapInterval', () => {
  it('returns the cadence if history supports it or does not exist, else the finest interval of history', () => {
    expect([prices, tvl, holders].map(toGapInterval)).toEqual(['5m', '1d', '1h'])
  })
})

describe('planRepair', () => {
  const entity = (id: string) => ({ id, key: 1, name: id })
  const gap = (id: string, from: number, to: number): EntityGap => ({ entity: entity(id), from, to, missing: 1 })

  it('shares jobs between entities with the same gap', () => {
    const chunks = planRepair(prices, [gap('a', 0, at(3)), gap('b', 0, at(3)), gap('b', at(50), at(51))], '5m')
    expect(chunks.map(({ payload }) => payload)).toEqual([
      { kind: 'range', from: 0, to: at(3), interval: '5m', entities: ['a', 'b'] },
      { kind: 'range', from: at(50), to: at(51), interval: '5m', entities: ['b'] },
    ])
  })

  it('plans nothing if the sources have no such history', () => {
    expect(planRepair(holders, [gap('a', 0, 3_600_000)], '1h')).toEqual([])
    expect(planRepair(tvl, [gap('a', 0, 3_600_000)], '1h')).toEqual([])
  })
})

describe('dataset that is off', () => {
  it('is not scanned for gaps and not back-filled', () => {
    const nothing = { dataset: undefined, from: undefined, to: undefined, interval: undefined }
    expect(toRequest(nothing, ['tvl']).jobs.map(({ name }) => name)).not.toContain('tvl')
    expect(() => toRequest({ ...nothing, dataset: 'tvl' }, ['tvl'])).toThrow('tvl is not collected: DATASETS_OFF')
    const request = { dataset: 'tvl', from: '2024-05-01', to: '2024-05-02', interval: undefined, only: undefined }
    const now = Date.parse('2024-05-06T00:00:00Z')
    expect(() => planBackfill(request, loadRegistry(), now, ['tvl'])).toThrow('tvl is not collected: DATASETS_OFF')
  })
})

describe('toRequest', () => {
  it('reports all invalid options in one error', () => {
    const wrong = { dataset: 'weather', from: '2024-13-01', to: 'soon', interval: '2h' }
    expect(() => toRequest(wrong)).toThrow(/weather.*--from 2024-13-01.*--to soon.*--interval 2h/s)
  })
})
