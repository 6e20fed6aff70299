import { DAY, FIVE_MINUTES, HOUR, MINUTE, PUBLICATION_LAG } from '../world.ts'

export const MAX_POINTS = 10_000

/** Intervals that repeat from the window's start, in milliseconds. Source: docs/providers.md, section 1.2. */
const RELATIVE: Readonly<Record<string, number>> = {
  ...steps('m', MINUTE, [5, 10, 15, 30, 45]),
  ...steps('h', HOUR, [1, 2, 3, 4, 6, 12, 24]),
  ...steps('d', DAY, [1, 2, 3, 7, 14, 15, 30, 60, 90, 365]),
}
/** Intervals on the UTC calendar: the start of the period that contains `at`, plus `periods`. */
const CALENDAR: Readonly<Record<string, (at: Date, periods: number) => number>> = {
  hourly: (at, periods) => (Math.floor(at.getTime() / HOUR) + periods) * HOUR,
  daily: (at, periods) => (Math.floor(at.getTime() / DAY) + periods) * DAY,
  weekly: (at, periods) => startOfWeek(at.getTime()) + periods * 7 * DAY,
  monthly: (at, periods) => Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + periods),
  yearly: (at, periods) => Date.UTC(at.getUTCFullYear() + periods, 0),
}

/**
 * The times of the requested quotes. The quote of `steps[n]` is at or after `from(n)` and before `to(n)`: the first one
 * of a calendar period, or the one closest to the step of a relative interval, which may be before the step.
 */
export interface Window {
  readonly steps: readonly number[]
  readonly isCalendar: boolean
  from(index: number): number
  to(index: number): number
}

/**
 * Parses `interval`, `count`, `time_start` and `time_end`; returns the message of a 400 for rejected values.
 * `time_start` is exclusive. `time_end` is inclusive and defaults to now. Without `time_start` the window extends back
 * from the end. Newer times than the publication lag allows are excluded. A range of more than 10,000 periods is
 * rejected.
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
  const steps = start === null ? stepsBefore(interval, last, points) : stepsAfter(interval, start, last, points)
  if (steps.length > MAX_POINTS) return { invalid: `The range must not hold more than ${MAX_POINTS} data points` }
  const half = (RELATIVE[interval] ?? 0) / 2
  const stepAt = (index: number) => steps[index] ?? end
  return {
    steps,
    isCalendar: interval in CALENDAR,
    from: (index) => stepAt(index) - half,
    to: (index) => Math.min(half === 0 ? stepAfter(interval, stepAt(index)) : stepAt(index) + half, end),
  }
}

function stepAfter(interval: string, step: number): number {
  const length = RELATIVE[interval]
  return length === undefined ? (CALENDAR[interval]?.(new Date(step), 1) ?? step) : step + length
}

/** Steps after `start`: relative intervals repeat from it, calendar ones begin at the next boundary. */
function stepsAfter(interval: string, start: number, last: number, points: number): number[] {
  const steps: number[] = []
  for (let at = stepAfter(interval, start); at <= last && steps.length < points; at = stepAfter(interval, at))
    steps.push(at)
  return steps
}

/** The last `points` steps up to `last`, oldest first. Relative ones count back from the newest 5-minute mark. */
function stepsBefore(interval: string, last: number, points: number): number[] {
  const step = RELATIVE[interval]
  const anchor = Math.floor(last / FIVE_MINUTES) * FIVE_MINUTES
  return Array.from({ length: points }, (_, index) => {
    const back = points - 1 - index
    return step === undefined ? (CALENDAR[interval]?.(new Date(last), -back) ?? last) : anchor - back * step
  })
}

/** Milliseconds from Unix seconds, Unix milliseconds or ISO 8601; null if absent, NaN if invalid. */
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
