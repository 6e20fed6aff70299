import type { SERIES_HEADERS } from '../http/headers.ts'

/** The headers that describe a series answer. */
export const toSeriesHeaders = (
  interval: string,
  points: number,
  missing: number,
): Record<keyof typeof SERIES_HEADERS, string> => ({
  'X-Series-Interval': interval,
  'X-Series-Points': String(points),
  'X-Series-Missing': String(missing),
})
