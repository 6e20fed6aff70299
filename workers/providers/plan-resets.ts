import { DAY_MS } from '../../shared/intervals.ts'

/** How long it is until a plan's next day begins in UTC, in milliseconds; `now` is Unix milliseconds. */
export const toNextDay = (now: number): number => DAY_MS - (now % DAY_MS)

/** The same until the first of the next month, with which plans by the calendar begin anew. */
export function toNextMonth(now: number): number {
  const date = new Date(now)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1) - now
}
