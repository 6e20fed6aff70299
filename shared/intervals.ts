/** The series intervals of the interface, finest first. */
export const INTERVALS = ['5m', '30m', '1h', '4h', '1d', '7d'] as const
export type Interval = (typeof INTERVALS)[number]

/** How often a dataset is refreshed. */
export const CADENCES = ['5m', '1h', '1d'] as const
export type Cadence = (typeof CADENCES)[number]

const SECOND = 1000
const DAY_SECONDS = 86_400

export const INTERVAL_SECONDS: Readonly<Record<Interval, number>> = {
  '5m': 300,
  '30m': 1800,
  '1h': 3600,
  '4h': 14_400,
  '1d': DAY_SECONDS,
  '7d': 7 * DAY_SECONDS,
}

/** The times from `from` on up to `to`, which is no part of it; in Unix milliseconds. */
export interface TimeRange {
  readonly from: number
  readonly to: number
}

/** In milliseconds, as clocks here count. */
export const HOUR_MS = INTERVAL_SECONDS['1h'] * SECOND
export const DAY_MS = INTERVAL_SECONDS['1d'] * SECOND
export const WEEK_MS = INTERVAL_SECONDS['7d'] * SECOND

/** 1970-01-05 was the first Monday; seven-day buckets start on Mondays (docs/contract.md, section 4). */
export const MONDAY_SHIFT_MS = 4 * DAY_MS

/** The start of the step of `seconds` that holds a time, both in Unix milliseconds, on the UTC grid. */
export function toStepStart(ms: number, seconds: number): number {
  const step = seconds * SECOND
  const shift = seconds === INTERVAL_SECONDS['7d'] ? MONDAY_SHIFT_MS : 0
  return Math.floor((ms - shift) / step) * step + shift
}

/** The start of the bucket that holds a time, both in Unix milliseconds, on the UTC grid. */
export const toBucketStart = (ms: number, interval: Interval): number => toStepStart(ms, INTERVAL_SECONDS[interval])

/** How many bucket starts of an interval lie in [startMs, endMs). */
export function countBuckets(startMs: number, endMs: number, interval: Interval): number {
  if (endMs <= startMs) return 0
  const step = INTERVAL_SECONDS[interval] * SECOND
  const first = toBucketStart(startMs - 1, interval) + step
  return first >= endMs ? 0 : Math.floor((endMs - 1 - first) / step) + 1
}

/** The first day of history: of what lies before nothing is collected, and nothing can be asked for. */
export const HISTORY_START = '2022-02-01'

/** Nothing that is collected was observed before the first block of the first chain, in January 2009; Unix milliseconds. */
export const EARLIEST_MS = Date.parse('2009-01-03T00:00:00Z')

/** Later than anything that is stored, in Unix milliseconds, and within what every version of ClickHouse has times for. */
export const END_OF_TIME = Date.parse('2200-01-01')
