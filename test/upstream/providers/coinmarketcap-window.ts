import { DAY, FIVE_MINUTES, HOUR, MINUTE, PUBLICATION_LAG } from '../world.ts'

export const MAX_POINTS = 10_000

/** Intervals that repeat from the window's start, in milliseconds. Source: providers document, section 1.2. */
const RELATIVE: Readonly<Record<string, number>> = {
  ...steps('m', MINUTE, [5, 10, 15, 30, 45]),
  ...steps('h', HOUR, [1, 2, 3, 4, 6, 12, 24]),
  ...steps('d', DAY, [1, 2, 3, 7, 14, 15, 30, 60, 90, 365]),
}
/** Intervals on the UTC calendar: the start of the period that holds `at`, moved on by `periods`. */
const CALENDAR: Readonly<Record<string, (at: Date, periods: number) => number>> = {
  hourly: (at, periods) => (Math.floor(at.getTime() / HOUR) + periods) * HOUR,
  daily: (at, periods) => (Math.floor(at.getTime() / DAY) + periods) * DAY,
  weekly: (at, periods) => startOfWeek(at.getTime()) + periods * 7 * DAY,
  monthly: (at, periods) => Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + periods),
  yearly: (at, periods) => Date.UTC(at.getUTCFullYear() + periods, 0),
}

/** Where points are looked for: period `n` is [starts[n], starts[n + 1]), the last one ends with `end` (exclusive). */
export interface Window {
  readonly starts: readonly number[]
  readonly end: number
  readonly interval: string
}

/**
 * Reads `interval`, `count`, `time_start` and `time_end`; answers the message of a 400 for what the provider refuses.
 * `time_end` is inclusive and defaults to now; without `time_start` the window reaches back from the end; nothing is
 * newer than the publication lag allows. A range of more than 10,000 periods is refused.
 */
export function toWindow(query: URLSearchParams, now: number): Window | { readonly invalid: string } {
  const interval = query.get('interval') ?? '5m'
  if (!(interval in RELATIVE) && !(interval in CALENDAR)) return { invalid: `Invalid value for "interval"` }
  const count = query.has('count') ? Number(query.get('count')) : null
  if (count !== null && (!Number.isInteger(count) || count < 1)) return { invalid: 'Invalid value for "count"' }
  if (count !== null && count > MAX_POINTS) return { invalid: `"count" must be less than or equal to ${MAX_POINTS}` }
  const start = toTime(query.get('time_start'))
  const until = toTime(query.get('time_end'))
  if (Number.isNaN(start)) return { invalid: 'Invalid value for "time_start"' }
  if (Number.isNaN(until)) return { invalid: 'Invalid value for "time_end"' }
  const last = until ?? now
  if (start !== null && start > last) return { invalid: '"time_start" must be before "time_end"' }

  const end = Math.min(last, now - PUBLICATION_LAG) + 1
  const points = count ?? (start !== null && until !== null ? MAX_POINTS + 1 : 10)
  const starts = start === null ? startsBefore(interval, last, points) : startsAfter(interval, start, last, points)
  if (starts.length > MAX_POINTS) return { invalid: `The range must not hold more than ${MAX_POINTS} data points` }
  return { starts, end, interval }
}

/** The end of period `index`, exclusive. */
export function endOf(window: Window, index: number): number {
  const { interval, starts, end } = window
  const next = starts[index + 1] ?? startAfter(interval, starts[index] ?? end)
  return Math.min(next, end)
}

function startAfter(interval: string, start: number): number {
  const step = RELATIVE[interval]
  return step === undefined ? (CALENDAR[interval]?.(new Date(start), 1) ?? start) : start + step
}

/** Period starts from `start` on: relative intervals repeat from it, calendar ones begin at the next boundary. */
function startsAfter(interval: string, start: number, last: number, points: number): number[] {
  const calendar = CALENDAR[interval]
  const boundary = calendar?.(new Date(start), 0) ?? start
  let at = boundary < start ? startAfter(interval, boundary) : boundary
  const starts: number[] = []
  for (; at <= last && starts.length < points; at = startAfter(interval, at)) starts.push(at)
  return starts
}

/** The last `points` period starts up to `last`, oldest first. Relative ones count back from the newest 5-minute mark. */
function startsBefore(interval: string, last: number, points: number): number[] {
  const step = RELATIVE[interval]
  const anchor = Math.floor(last / FIVE_MINUTES) * FIVE_MINUTES
  return Array.from({ length: points }, (_, index) => {
    const back = points - 1 - index
    return step === undefined ? (CALENDAR[interval]?.(new Date(last), -back) ?? last) : anchor - back * step
  })
}

/** Milliseconds from Unix seconds, Unix milliseconds or ISO 8601; null when absent, NaN when unreadable. */
function toTime(text: string | null): number | null {
  if (text === null) return null
  if (/^\d+$/.test(text)) return Number(text) > 1e11 ? Number(text) : Number(text) * 1000
  return Date.parse(text)
}

/** Weeks begin on Mondays; the Unix epoch was a Thursday. */
function startOfWeek(at: number): number {
  const monday = 4 * DAY
  return Math.floor((at - monday) / (7 * DAY)) * 7 * DAY + monday
}

function steps(unit: string, length: number, counts: readonly number[]): Record<string, number> {
  return Object.fromEntries(counts.map((count) => [`${count}${unit}`, count * length]))
}
