import { describe, expect, it } from 'vitest'
import { daoFeesRow } from '../../shared/datasets/fees.ts'
import fees from '../../workers/jobs/fees.ts'
import { toFeeDays } from '../../workers/providers/defillama/fees.ts'
import { checkRows } from '../../workers/run/runner.ts'
import { toTestDao } from '../samples.ts'
import { silent } from '../support/silent.ts'

const DAY = 86_400_000
const day = (n: number) => Date.UTC(2024, 4, n)
const point = (n: number, value: unknown) => [day(n) / 1000, value]
const alfa = toTestDao(1, 'alfa')
const range = { from: day(1), to: day(5) }
const rowOf = (n: number, fees_usd: number | null, revenue_usd: number | null) => ({
  dao: 1,
  observed_at: new Date(day(n) + DAY - 1).toISOString(),
  fees_usd,
  revenue_usd,
})

describe('toFeeDays', () => {
  it('returns a row for each day of the range, at the last millisecond of the day', () => {
    const paid = [point(1, 100), point(2, 200.5), point(5, 7), [day(0) / 1000, 9]]
    const revenue = [point(1, 10), point(2, -20)]
    const { rows, omitted } = toFeeDays(alfa, { fees: paid, revenue }, range)
    expect(rows).toEqual([rowOf(1, 100, 10), rowOf(2, 200.5, -20)])
    expect(omitted.count).toBe(0)
    for (const row of rows) expect(daoFeesRow.safeParse(row).error).toBeUndefined()
  })

  it('returns null for the value that the provider does not have, and no row without a value', () => {
    const paid = [point(1, 100), point(3, null), point(4, null)]
    const revenue = [point(2, 10), point(4, 40)]
    const { rows, omitted } = toFeeDays(alfa, { fees: paid, revenue }, range)
    expect(rows).toEqual([rowOf(1, 100, null), rowOf(2, null, 10), rowOf(4, null, 40)])
    expect(omitted.count).toBe(0)
  })

  it('accepts a decimal string as a value, and 0 as a known value', () => {
    const { rows } = toFeeDays(alfa, { fees: [point(1, '12.5'), point(2, 0)], revenue: [] }, range)
    expect(rows).toEqual([rowOf(1, 12.5, null), rowOf(2, 0, null)])
  })

  it.each([
    ['null', null],
    ['an object', { date: day(2) / 1000, value: 5 }],
    ['a value alone', [5]],
    ['a time that is no number', ['yesterday', 5]],
    ['a time with a fraction', [day(2) / 1000 + 0.5, 5]],
    ['a value that is no number', point(2, 'many')],
    ['a value that is a breakdown', point(2, { Ethereum: 5 })],
    ['more than a time and a value', [...point(2, 5), 6]],
  ])('leaves out a point that is %s, and only that point', (_what, damaged) => {
    const { rows, omitted } = toFeeDays(
      alfa,
      { fees: [point(1, 1), damaged, point(3, 3)], revenue: [point(2, 20)] },
      range,
    )
    expect(rows).toEqual([rowOf(1, 1, null), rowOf(2, null, 20), rowOf(3, 3, null)])
    expect(omitted).toMatchObject({ count: 1, reason: expect.stringMatching(/^fees: /) })
  })
})

describe('daoFeesRow', () => {
  const check = (row: object) =>
    checkRows(fees.dataset, 'defillama', [row, rowOf(2, 1, 1), rowOf(3, 1, 1)], { now: day(9), log: silent })

  it('drops a value out of bounds and keeps the other value of the day', () => {
    expect(check(rowOf(1, 5e10, 10)).rows).toContainEqual(rowOf(1, null, 10))
    expect(check(rowOf(1, 100, -5e10)).rows).toContainEqual(rowOf(1, 100, null))
  })

  it('rejects a day without a value in bounds', () => {
    expect(check(rowOf(1, 5e10, null))).toMatchObject({ rejected: 1, rows: [rowOf(2, 1, 1), rowOf(3, 1, 1)] })
  })
})
