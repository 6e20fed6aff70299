import { DAY_MS } from '../../shared/intervals.ts'

/** Returns the time until the next UTC day in milliseconds; `now` is in Unix milliseconds. */
export const toNextDay = (now: number): number => DAY_MS - (now % DAY_MS)

/** Returns the time until the first of the next month in milliseconds, when plans by calendar month reset. */
export function toNextMonth(now: number): number {
  const date = new Date(now)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1) - now
}
