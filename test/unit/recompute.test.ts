import { describe, expect, it } from 'vitest'
import { toRanges } from '../../workers/schedule/recompute.ts'

const at = (iso: string) => Date.parse(iso)
const fields = (times: string[], points = 7) =>
  toRanges(times.map(at), '1d', points).map((range) =>
    [range.from, range.to].map((ms) => new Date(ms).toISOString().slice(0, 10)),
  )

describe('toRanges', () => {
  it('returns whole UTC days', () => {
    expect(fields(['2024-05-06T00:00:00Z', '2024-05-06T23:59:59.999Z'])).toEqual([['2024-05-06', '2024-05-07']])
  })

  it('joins days within a window of the grid into one range', () => {
    // 2024-05-02 is day 19,845 of the epoch, a multiple of 7.
    expect(fields(['2024-05-08T12:00:00Z', '2024-05-02T00:00:00Z', '2024-05-04T01:00:00Z'])).toEqual([
      ['2024-05-02', '2024-05-09'],
    ])
    expect(fields(['2024-05-08T23:00:00Z', '2024-05-09T01:00:00Z'])).toEqual([
      ['2024-05-08', '2024-05-09'],
      ['2024-05-09', '2024-05-10'],
    ])
  })

  it('does not extend a range to a distant row, and sorts ranges', () => {
    expect(fields(['2024-05-06T07:05:00Z', '2021-01-01T00:00:00Z'])).toEqual([
      ['2021-01-01', '2021-01-02'],
      ['2024-05-06', '2024-05-07'],
    ])
  })

  it('returns nothing without rows', () => {
    expect(fields([])).toEqual([])
  })
})
