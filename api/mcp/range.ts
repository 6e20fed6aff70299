import { countBuckets, DAY_MS, HISTORY_START, HOUR_MS, type Interval } from '../../shared/intervals.ts'
import { explainTime, parseTime } from '../parameters/time.ts'
import { Mistake } from './mistake.ts'

const UNITS: Readonly<Record<string, number>> = {
  h: HOUR_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
  m: 30 * DAY_MS,
  y: 365 * DAY_MS,
}
const DEFAULT_LAST = '30d'

/** A time range in an assistant's words. */
export interface Said {
  readonly start?: string | undefined
  readonly end?: string | undefined
  readonly last?: string | undefined
}

const toTime = (name: string, text: string): number => {
  const ms = parseTime(text)
  if (ms === undefined) throw new Mistake(`${name} ${explainTime(text)}`)
  return ms
}

function toLength(last: string): number {
  const [, count, unit = ''] = /^(\d{1,4})([hdwmy])$/.exec(last) ?? []
  const length = Number(count) * (UNITS[unit] ?? Number.NaN)
  if (!(length > 0)) throw new Mistake('last must be a length such as 24h, 30d, 12w, 6m or 2y.')
  return length
}

/** Parses the range to Unix milliseconds, limited to the start of the history. */
export function toRange({ start, end, last }: Said, now: number): { readonly from: number; readonly to: number } {
  if (start !== undefined && last !== undefined) throw new Mistake('Use start or last, not both.')
  const to = end === undefined ? now : Math.min(toTime('end', end), now)
  const requestedFrom = start === undefined ? to - toLength(last ?? DEFAULT_LAST) : toTime('start', start)
  const from = Math.max(requestedFrom, Date.parse(HISTORY_START))
  if (from < to) return { from, to }
  throw new Mistake(
    `The range is empty: start must lie before end and before now, and there is history since ${HISTORY_START}.`,
  )
}

/** The finest interval with at most `points` points in the range, or the coarsest. */
export function chooseInterval(
  intervals: readonly Interval[],
  { from, to }: { readonly from: number; readonly to: number },
  points: number,
): Interval {
  const interval = intervals.find((one) => countBuckets(from, to, one) <= points) ?? intervals.at(-1)
  if (interval === undefined) throw new Mistake('This topic is not a series: use the tool query.')
  return interval
}
