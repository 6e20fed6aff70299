import { describe, expect, it } from 'vitest'
import { describeSeries, nextGridTime, toSeriesRange } from '../../api/series/series.ts'

const at = (text: string) => Date.parse(text)
const now = at('2024-01-10T12:02:00Z')

describe('the range of a series', () => {
  it('holds the buckets that start in [start, end)', () => {
    const range = toSeriesRange(
      { start: at('2024-01-01T00:01:00Z'), end: at('2024-01-01T01:00:00Z'), interval: '5m' },
      now,
    )
    expect([range.from, range.to]).toEqual([at('2024-01-01T00:05:00Z'), at('2024-01-01T01:00:00Z')])
  })

  it('keeps a bucket that starts before an end inside it', () => {
    const range = toSeriesRange({ start: at('2024-01-01'), end: at('2024-01-01T00:00:01Z'), interval: '1h' }, now)
    expect(range.to).toBe(at('2024-01-01T01:00:00Z'))
  })

  it.each([undefined, now + 1, now + 1e12])('reaches to the bucket under way at most: end %s', (end) => {
    for (const at of [now, nextGridTime(now)]) {
      const range = toSeriesRange({ start: 0, end: end && end - now + at, interval: '5m' }, at)
      expect([range.to, range.open]).toEqual([nextGridTime(at), true])
    }
  })

  it('is closed when it ends now or before', () => {
    expect(toSeriesRange({ start: 0, end: now, interval: '5m' }, now).open).toBe(false)
  })
})

describe('what is told of a series', () => {
  const query = { start: at('2024-01-10T11:00:00Z'), interval: '5m' } as const
  const range = toSeriesRange(query, now)

  it('counts missing buckets up to now, the one under way included', () => {
    const facts = describeSeries({ ...query, range, points: 10, asOf: at('2024-01-10T12:00:10Z') })
    expect(facts.headers).toEqual({
      'X-Series-Interval': '5m',
      'X-Series-Points': '10',
      'X-Series-Missing': '3',
    })
  })

  it('counts up to the last point when limit cuts', () => {
    const facts = describeSeries({ ...query, range, points: 4, isCut: true, asOf: at('2024-01-10T11:20:30Z') })
    expect(facts.headers['X-Series-Missing']).toBe('1')
  })

  it('expires when the next bucket begins', () => {
    expect(nextGridTime(now)).toBe(at('2024-01-10T12:05:00Z'))
    expect(nextGridTime(at('2024-01-10T12:05:00Z'))).toBe(at('2024-01-10T12:10:00Z'))
  })
})
