import { describe, expect, it } from 'vitest'
import { countBuckets, INTERVAL_SECONDS, INTERVALS, toBucketStart } from '../../shared/intervals.ts'

const at = (iso: string) => Date.parse(iso)

describe('toBucketStart', () => {
  it.each([
    ['5m', '2024-01-03T12:34:56.789Z', '2024-01-03T12:30:00.000Z'],
    ['30m', '2024-01-03T12:34:56.789Z', '2024-01-03T12:30:00.000Z'],
    ['1h', '2024-01-03T12:00:00.000Z', '2024-01-03T12:00:00.000Z'],
    ['4h', '2024-01-03T23:59:59.999Z', '2024-01-03T20:00:00.000Z'],
    ['1d', '2024-02-29T23:00:00.000Z', '2024-02-29T00:00:00.000Z'],
  ] as const)('maps for %s the time %s to %s', (interval, time, bucket) => {
    expect(new Date(toBucketStart(at(time), interval)).toISOString()).toBe(bucket)
  })

  it('starts seven-day buckets on Monday', () => {
    expect(new Date(toBucketStart(at('2024-01-07T23:59:59Z'), '7d')).toISOString()).toBe('2024-01-01T00:00:00.000Z')
    expect(new Date(toBucketStart(at('2024-01-08T00:00:00Z'), '7d')).toISOString()).toBe('2024-01-08T00:00:00.000Z')
  })
})

describe('countBuckets', () => {
  it('counts the bucket starts in a half-open range', () => {
    expect(countBuckets(at('2024-01-01T00:00:00Z'), at('2024-01-01T01:00:00Z'), '5m')).toBe(12)
    expect(countBuckets(at('2024-01-01T00:00:01Z'), at('2024-01-01T01:00:00Z'), '5m')).toBe(11)
    expect(countBuckets(at('2024-01-01T00:00:00Z'), at('2024-01-01T01:00:01Z'), '5m')).toBe(13)
    expect(countBuckets(at('2024-01-01T00:00:00Z'), at('2024-01-01T00:00:00Z'), '5m')).toBe(0)
  })

  it('equals a loop over the grid', () => {
    const start = at('2024-01-02T03:04:05Z')
    const end = at('2024-03-09T10:11:12Z')
    for (const interval of INTERVALS) {
      let walked = 0
      for (let t = toBucketStart(start, interval); t < end; t += INTERVAL_SECONDS[interval] * 1000)
        if (t >= start) walked++
      expect(countBuckets(start, end, interval)).toBe(walked)
    }
  })
})
