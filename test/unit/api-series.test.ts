import { describe, expect, it } from 'vitest'
import { describeSeries, nextGridTime, toSeriesRange } from '../../api/series/series.ts'
import { toSeriesDueEnd } from '../../shared/buckets.ts'
import { dexTrades } from '../../shared/datasets/dex-trades.ts'
import { indexPoints } from '../../shared/datasets/index-points.ts'
import { marketCap } from '../../shared/datasets/market-cap.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { daoTreasury } from '../../shared/datasets/treasury.ts'

const at = (text: string) => Date.parse(text)
const now = at('2024-01-10T12:02:00Z')

describe('toSeriesRange', () => {
  it('contains the buckets that start in [start, end)', () => {
    const range = toSeriesRange(
      { start: at('2024-01-01T00:01:00Z'), end: at('2024-01-01T01:00:00Z'), interval: '5m' },
      now,
    )
    expect([range.from, range.to]).toEqual([at('2024-01-01T00:05:00Z'), at('2024-01-01T01:00:00Z')])
  })

  it('includes a bucket that starts before the end', () => {
    const range = toSeriesRange({ start: at('2024-01-01'), end: at('2024-01-01T00:00:01Z'), interval: '1h' }, now)
    expect(range.to).toBe(at('2024-01-01T01:00:00Z'))
  })

  it.each([undefined, now + 1, now + 1e12])('ends after the current bucket at the latest, for end %s', (end) => {
    for (const at of [now, nextGridTime(now)]) {
      const range = toSeriesRange({ start: 0, end: end && end - now + at, interval: '5m' }, at)
      expect([range.to, range.open]).toEqual([nextGridTime(at), true])
    }
  })

  it('is closed if it ends now or earlier', () => {
    expect(toSeriesRange({ start: 0, end: now, interval: '5m' }, now).open).toBe(false)
  })
})

describe('describeSeries', () => {
  const query = { start: at('2024-01-10T11:00:00Z'), interval: '5m', dataset: tokenPrices } as const
  const range = toSeriesRange(query, now)
  const asOf = at('2024-01-10T12:00:10Z')
  const missingOf = (...requested: Parameters<typeof describeSeries>) =>
    describeSeries(...requested).headers['X-Series-Missing']

  it('counts due buckets without a point', () => {
    const facts = describeSeries({ ...query, range, points: 10, early: 0, asOf }, now)
    expect(facts.headers).toEqual({
      'X-Series-Interval': '5m',
      'X-Series-Points': '10',
      'X-Series-Missing': '1',
    })
  })

  it('does not offset a missing bucket by a point of a bucket that is not due', () => {
    expect(missingOf({ ...query, range, points: 10, early: 2, asOf }, now)).toBe('3')
    expect(missingOf({ ...query, range, points: 13, early: 2, asOf }, now)).toBe('0')
  })

  it('counts missing buckets only up to the last point if limit cuts', () => {
    const cut = { ...query, range, points: 4, early: 0, isCut: true, asOf: at('2024-01-10T11:20:30Z') }
    expect(missingOf(cut, now)).toBe('1')
  })

  it('sets an expiry while buckets of a closed range are not due', () => {
    const closed = (end: number) => toSeriesRange({ ...query, end }, now)
    const expiryOf = (end: number) =>
      describeSeries({ ...query, range: closed(end), points: 0, early: 0, asOf: null }, now).expiresAt
    expect(expiryOf(at('2024-01-10T12:00:00Z'))).toBe(nextGridTime(now))
    expect(expiryOf(at('2024-01-10T11:55:00Z'))).toBeUndefined()
  })

  it('nextGridTime() returns the start of the next bucket', () => {
    expect(nextGridTime(now)).toBe(at('2024-01-10T12:05:00Z'))
    expect(nextGridTime(at('2024-01-10T12:05:00Z'))).toBe(at('2024-01-10T12:10:00Z'))
  })
})

describe('toSeriesDueEnd', () => {
  const dueEnd = (dataset: Parameters<typeof toSeriesDueEnd>[0], interval: '5m' | '1h' | '1d' | '7d', time: string) =>
    new Date(toSeriesDueEnd(dataset, interval, at(time))).toISOString()

  it.each([
    // The bucket of a slot is due when the next slot begins.
    ['a slot per bucket', daoTreasury, '1d', '2024-01-10T23:59:59Z', '2024-01-10T00:00:00.000Z'],
    ['a slot per bucket', daoTreasury, '1d', '2024-01-11T00:00:00Z', '2024-01-11T00:00:00.000Z'],
    // 10 January is a Wednesday, so its week began on the 8th.
    ['a running week', daoTreasury, '7d', '2024-01-10T12:00:00Z', '2024-01-08T00:00:00.000Z'],
    ['rows with exact times', tokenPrices, '5m', '2024-01-10T12:04:59Z', '2024-01-10T11:55:00.000Z'],
    ['rows with exact times', tokenPrices, '5m', '2024-01-10T12:05:00Z', '2024-01-10T12:00:00.000Z'],
    ['an hour that has just ended', tokenPrices, '1h', '2024-01-10T12:04:59Z', '2024-01-10T11:00:00.000Z'],
    ['an hour that has just ended', tokenPrices, '1h', '2024-01-10T12:05:00Z', '2024-01-10T12:00:00.000Z'],
    ['computed values', indexPoints, '5m', '2024-01-10T12:04:59Z', '2024-01-10T11:55:00.000Z'],
    ['computed values', marketCap, '1d', '2024-01-11T00:04:59Z', '2024-01-10T00:00:00.000Z'],
    ['computed values', marketCap, '1d', '2024-01-11T00:05:00Z', '2024-01-11T00:00:00.000Z'],
    ['events read in the next slot', dexTrades, '5m', '2024-01-10T12:59:59Z', '2024-01-10T11:00:00.000Z'],
    ['events read in the next slot', dexTrades, '5m', '2024-01-10T13:00:00Z', '2024-01-10T12:00:00.000Z'],
  ] as const)('returns the end of the due buckets for %s: %#', (_, dataset, interval, time, end) => {
    expect(dueEnd(dataset, interval, time)).toBe(end)
  })
})
