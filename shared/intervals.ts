/** The series intervals of the API, finest first. */
export const INTERVALS = ['5m', '30m', '1h', '4h', '1d', '7d'] as const
export type Interval = (typeof INTERVALS)[number]

/** The refresh intervals of datasets. */
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

/** Times from `from` (inclusive) to `to` (exclusive), in Unix milliseconds. */
export interface TimeRange {
  readonly from: number
  readonly to: number
}

/**
 * SQL condition on times: from `{from: Int64}` (inclusive) to `{to: Int64}` (exclusive), in Unix milliseconds. In a
 * statement with several ranges both names end with the number of the range.
 */
export const isWithin = (column: string, number: number | '' = ''): string =>
  `${column} >= fromUnixTimestamp64Milli({from${number}: Int64}, 'UTC') AND ${column} < fromUnixTimestamp64Milli({to${number}: Int64}, 'UTC')`

export const HOUR_MS = INTERVAL_SECONDS['1h'] * SECOND
export const DAY_MS = INTERVAL_SECONDS['1d'] * SECOND

/** 1970-01-05 was the first Monday; seven-day buckets start on Mondays (docs/contract.md, section 4). */
export const MONDAY_SHIFT_MS = 4 * DAY_MS

/** The start of the step of `seconds` that contains a time, on the UTC grid. Both times are Unix milliseconds. */
export function toStepStart(ms: number, seconds: number): number {
  const step = seconds * SECOND
  const shift = seconds === INTERVAL_SECONDS['7d'] ? MONDAY_SHIFT_MS : 0
  return Math.floor((ms - shift) / step) * step + shift
}

/** The start of the bucket that contains a time, on the UTC grid. Both times are Unix milliseconds. */
export const toBucketStart = (ms: number, interval: Interval): number => toStepStart(ms, INTERVAL_SECONDS[interval])

/** The number of bucket starts of an interval in [startMs, endMs). */
export function countBuckets(startMs: number, endMs: number, interval: Interval): number {
  if (endMs <= startMs) return 0
  const step = INTERVAL_SECONDS[interval] * SECOND
  const first = toBucketStart(startMs - 1, interval) + step
  return first >= endMs ? 0 : Math.floor((endMs - 1 - first) / step) + 1
}

/** The first day of history. Earlier data is neither collected nor served. */
export const HISTORY_START = '2022-02-01'

/** Lower bound of stored times: the first block of the first chain, January 2009. Unix milliseconds. */
export const EARLIEST_MS = Date.parse('2009-01-03T00:00:00Z')

/** Later than every stored time and within the time range of every ClickHouse version. Unix milliseconds. */
export const END_OF_TIME = Date.parse('2200-01-01')

/**
 * Caches the results of a pure function for at most `most` texts. The rows of many entities have the same few thousand
 * times, and parsing a time takes ten times as long as finding it in the cache.
 */
export function remembering<T>(toValue: (text: string) => T, most = 20_000): (text: string) => T {
  const cached = new Map<string, T>()
  return (text) => {
    const found = cached.get(text)
    if (found !== undefined) return found
    if (cached.size >= most) cached.clear()
    const value = toValue(text)
    cached.set(text, value)
    return value
  }
}

/** A time in Unix milliseconds; NaN where the text is none. */
export const toMs: (text: string) => number = remembering(Date.parse)
