import { describe, expect, test } from 'vitest'
import { MAX_POINTS, toWindow, type Window } from '../upstream/providers/coinmarketcap-window.ts'

const NOW = Date.UTC(2024, 5, 5, 12, 3, 20)

function windowOf(query: string): Window {
  const window = toWindow(new URLSearchParams(query), NOW)
  if ('invalid' in window) throw new Error(window.invalid)
  return window
}
function stepsOf(query: string): string[] {
  return windowOf(query).steps.map((at) => new Date(at).toISOString().replace(':00.000Z', ''))
}

describe('toWindow', () => {
  test('covers ten 5-minute periods before now by default', () => {
    const steps = stepsOf('')
    expect(steps).toHaveLength(10)
    expect(steps.at(0)).toBe('2024-06-05T11:15')
    expect(steps.at(-1)).toBe('2024-06-05T12:00')
  })

  test('repeats a relative interval from time_start (exclusive) to time_end (inclusive)', () => {
    expect(stepsOf('interval=30m&time_start=2024-01-01T00:10:00Z&time_end=2024-01-01T01:10:00Z')).toEqual([
      '2024-01-01T00:40',
      '2024-01-01T01:10',
    ])
  })

  test('returns count points after time_start', () => {
    expect(stepsOf('interval=7d&time_start=2024-01-01&count=3')).toEqual([
      '2024-01-08T00:00',
      '2024-01-15T00:00',
      '2024-01-22T00:00',
    ])
  })

  test('returns count points before time_end', () => {
    expect(stepsOf('interval=1d&time_end=1704412800&count=2')).toEqual(['2024-01-04T00:00', '2024-01-05T00:00'])
  })

  test.each([
    ['hourly', ['2024-01-31T11:00', '2024-01-31T12:00']],
    ['daily', ['2024-02-01T00:00', '2024-02-02T00:00']],
    ['weekly', ['2024-02-05T00:00', '2024-02-12T00:00']],
    ['monthly', ['2024-02-01T00:00', '2024-03-01T00:00']],
  ])('starts at the next calendar boundary for %s', (interval, steps) => {
    expect(stepsOf(`interval=${interval}&time_start=2024-01-31T10:30:00Z&count=2`)).toEqual(steps)
  })

  test('starts at the first of January for yearly', () => {
    expect(stepsOf('interval=yearly&count=2')).toEqual(['2023-01-01T00:00', '2024-01-01T00:00'])
  })

  test('covers half an interval around a step, up to the end', () => {
    const window = windowOf('interval=1d&time_start=2024-01-01&time_end=2024-01-03T06:00:00Z')
    expect([window.from(0), window.to(0)]).toEqual([Date.UTC(2024, 0, 1, 12), Date.UTC(2024, 0, 2, 12)])
    expect(window.to(1)).toBe(Date.UTC(2024, 0, 3, 6) + 1)
  })

  test('covers a calendar period from start to end', () => {
    const window = windowOf('interval=daily&time_start=2024-01-01&count=2')
    expect([window.from(0), window.to(0)]).toEqual([Date.UTC(2024, 0, 2), Date.UTC(2024, 0, 3)])
  })

  test('ends at the last published time', () => {
    expect(windowOf('').to(9)).toBe(NOW - 60_000 + 1)
  })

  test('accepts seconds, milliseconds and ISO times', () => {
    const seconds = windowOf('time_start=1704067200&count=1').steps
    expect(windowOf('time_start=1704067200000&count=1').steps).toEqual(seconds)
    expect(windowOf('time_start=2024-01-01T00:00:00Z&count=1').steps).toEqual(seconds)
  })

  test.each([
    ['interval=5min', 'interval'],
    ['count=0', 'count'],
    ['count=10001', String(MAX_POINTS)],
    ['time_start=yesterday', 'time_start'],
    ['time_end=tomorrow', 'time_end'],
    ['time_start=2024-01-02&time_end=2024-01-01', 'time_start'],
    ['interval=5m&time_start=2024-01-01&time_end=2024-03-01', String(MAX_POINTS)],
  ])('rejects %s', (query, named) => {
    const window = toWindow(new URLSearchParams(query), NOW)
    expect(window).toHaveProperty('invalid', expect.stringContaining(named))
  })
})
