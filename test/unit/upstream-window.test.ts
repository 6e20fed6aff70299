import { describe, expect, test } from 'vitest'
import { endOf, MAX_POINTS, toWindow, type Window } from '../upstream/providers/coinmarketcap-window.ts'

const NOW = Date.UTC(2024, 5, 5, 12, 3, 20)

function windowOf(query: string): Window {
  const window = toWindow(new URLSearchParams(query), NOW)
  if ('invalid' in window) throw new Error(window.invalid)
  return window
}
function startsOf(query: string): string[] {
  return windowOf(query).starts.map((at) => new Date(at).toISOString().replace(':00.000Z', ''))
}

describe('the window of a historical query', () => {
  test('reaches back ten 5-minute periods from now by default', () => {
    const starts = startsOf('')
    expect(starts).toHaveLength(10)
    expect(starts.at(0)).toBe('2024-06-05T11:15')
    expect(starts.at(-1)).toBe('2024-06-05T12:00')
  })

  test('repeats a relative interval from time_start, up to and with time_end', () => {
    expect(startsOf('interval=30m&time_start=2024-01-01T00:10:00Z&time_end=2024-01-01T01:10:00Z')).toEqual([
      '2024-01-01T00:10',
      '2024-01-01T00:40',
      '2024-01-01T01:10',
    ])
  })

  test('takes count points from time_start on', () => {
    expect(startsOf('interval=7d&time_start=2024-01-01&count=3')).toEqual([
      '2024-01-01T00:00',
      '2024-01-08T00:00',
      '2024-01-15T00:00',
    ])
  })

  test('takes count points before time_end', () => {
    expect(startsOf('interval=1d&time_end=1704412800&count=2')).toEqual(['2024-01-04T00:00', '2024-01-05T00:00'])
  })

  test.each([
    ['hourly', ['2024-01-31T11:00', '2024-01-31T12:00']],
    ['daily', ['2024-02-01T00:00', '2024-02-02T00:00']],
    ['weekly', ['2024-02-05T00:00', '2024-02-12T00:00']],
    ['monthly', ['2024-02-01T00:00', '2024-03-01T00:00']],
  ])('%s begins at the next boundary of the calendar', (interval, starts) => {
    expect(startsOf(`interval=${interval}&time_start=2024-01-31T10:30:00Z&count=2`)).toEqual(starts)
  })

  test('yearly reaches back to the first of January', () => {
    expect(startsOf('interval=yearly&count=2')).toEqual(['2023-01-01T00:00', '2024-01-01T00:00'])
  })

  test('ends a period where the next begins, and the last with time_end', () => {
    const window = windowOf('interval=1d&time_start=2024-01-01&time_end=2024-01-02T06:00:00Z')
    expect(endOf(window, 0)).toBe(Date.UTC(2024, 0, 2))
    expect(endOf(window, 1)).toBe(Date.UTC(2024, 0, 2, 6) + 1)
  })

  test('never ends later than what is published', () => {
    expect(windowOf('').end).toBe(NOW - 60_000 + 1)
  })

  test('reads seconds, milliseconds and ISO times alike', () => {
    const seconds = windowOf('time_start=1704067200&count=1').starts
    expect(windowOf('time_start=1704067200000&count=1').starts).toEqual(seconds)
    expect(windowOf('time_start=2024-01-01T00:00:00Z&count=1').starts).toEqual(seconds)
  })

  test.each([
    ['interval=5min', 'interval'],
    ['count=0', 'count'],
    ['count=10001', String(MAX_POINTS)],
    ['time_start=yesterday', 'time_start'],
    ['time_end=tomorrow', 'time_end'],
    ['time_start=2024-01-02&time_end=2024-01-01', 'time_start'],
    ['interval=5m&time_start=2024-01-01&time_end=2024-03-01', String(MAX_POINTS)],
  ])('refuses %s', (query, named) => {
    const window = toWindow(new URLSearchParams(query), NOW)
    expect(window).toHaveProperty('invalid', expect.stringContaining(named))
  })
})
