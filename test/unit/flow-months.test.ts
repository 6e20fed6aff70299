import { describe, expect, it } from 'vitest'
import { toMonths } from '../../web/pages/flow-months.ts'

const toSum = (month: string, kind: string, inUsd: number | null, outUsd: number | null) => ({
  ...{ recordedAt: `${month}-01T00:00:00.000Z`, kind, inUsd, outUsd },
})

describe('toMonths', () => {
  it('has income above zero, spending below it, and their sum', () => {
    const sums = [
      toSum('2026-01', 'income', 500, 0),
      toSum('2026-01', 'spending', 0, 150),
      toSum('2026-01', 'swap', 3000, 3000),
      toSum('2026-02', 'spending', 0, 20),
      toSum('2026-03', 'income', null, null),
      toSum('2026-03', 'spending', 0, 10),
    ]
    const { times, lines } = toMonths(sums)
    expect(times).toEqual(['2026-01', '2026-02', '2026-03'].map((month) => Date.parse(`${month}-01`) / 1000))
    expect(lines).toEqual([
      { name: 'income', values: [500, 0, null] },
      { name: 'spending', values: [-150, -20, -10] },
      { name: 'net', values: [350, -20, null] },
    ])
  })
})
