/** The ranges of a chart. */
export const RANGES = ['24h', '7d', '30d', '90d', '1y', 'all'] as const
export type Range = (typeof RANGES)[number]

export const INTERVALS = ['5m', '30m', '1h', '4h', '1d', '7d'] as const
export type Interval = (typeof INTERVALS)[number]

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Start of the service's history. */
const HISTORY_START = Date.UTC(2022, 1, 1)
/** A year of 5-minute points; larger series are for downloads. */
const MOST_POINTS = 110_000

const LENGTHS: Record<Range, number> = {
  '24h': DAY,
  '7d': 7 * DAY,
  '30d': 30 * DAY,
  '90d': 90 * DAY,
  '1y': 365 * DAY,
  all: Number.POSITIVE_INFINITY,
}

const STEPS: Record<Interval, number> = {
  '5m': 5 * MINUTE,
  '30m': 30 * MINUTE,
  '1h': HOUR,
  '4h': 4 * HOUR,
  '1d': DAY,
  '7d': 7 * DAY,
}

/** The default interval of a range. */
export const USUAL: Record<Range, Interval> = {
  '24h': '5m',
  '7d': '30m',
  '30d': '4h',
  '90d': '1d',
  '1y': '1d',
  all: '1d',
}

/** The start of a range on the grid of its interval, so that the query changes only when its answer can change. */
export function toStart(range: Range, interval: Interval, now: number): string {
  const start = Math.max(now - LENGTHS[range], HISTORY_START)
  return new Date(Math.ceil(start / STEPS[interval]) * STEPS[interval]).toISOString()
}

/** Whether a range has at least two points of an interval, and not too many. */
export function fits(range: Range, interval: Interval, now: number): boolean {
  const points = Math.min(LENGTHS[range], now - HISTORY_START) / STEPS[interval]
  return points >= 2 && points <= MOST_POINTS
}
