import { countBuckets, INTERVAL_SECONDS, type Interval, type TimeRange, toBucketStart } from '../../shared/intervals.ts'
import { Problem } from '../problem/problem.ts'
import { toSeriesHeaders } from './series-headers.ts'

/** What a series covers: whole buckets that start in the range, which begins and ends on the grid. */
export interface SeriesRange extends TimeRange {
  /** Whether it reaches up to now, so that time adds buckets to it. */
  readonly open: boolean
}

/** @throws Problem `invalid_parameter` for a range that ends before it starts. */
export function checkRange({ start, end }: { start?: number | undefined; end?: number | undefined }): void {
  if (start === undefined || end === undefined || end >= start) return
  throw new Problem('invalid_parameter', 'end must not be before start.', { param: 'end' })
}

/** The first grid time at or after a moment. */
const nextStart = (ms: number, interval: Interval) =>
  toBucketStart(ms - 1, interval) + INTERVAL_SECONDS[interval] * 1000

/** The start of the bucket after the one that holds a moment. */
export const startAfter = (ms: number, interval: Interval) => nextStart(ms + 1, interval)

/**
 * The whole buckets whose starts lie in [start, end) (contract section 4). Without an end, or with one to come, the
 * last is the bucket under way.
 */
export function toSeriesRange(
  query: { start: number; end?: number | undefined; interval: Interval },
  now: number,
): SeriesRange {
  const { start, end = Number.POSITIVE_INFINITY, interval } = query
  const open = end > now
  return {
    from: nextStart(start, interval),
    to: open ? startAfter(now, interval) : nextStart(end, interval),
    open,
  }
}

/** The next moment at which a bucket of any interval begins: coarser grids are parts of the finest one. */
export function nextGridTime(now: number): number {
  return startAfter(now, '5m')
}

/**
 * Age and headers of a series answer. Buckets are counted up to the end of the range, or up to the last point when
 * `limit` cut the answer there.
 */
export function describeSeries(series: {
  interval: Interval
  range: SeriesRange
  points: number
  asOf: number | null
  isCut?: boolean
}): { asOf: number | null; headers: Record<string, string> } {
  const { interval, range, points, asOf, isCut = false } = series
  const until = isCut && asOf !== null ? startAfter(asOf, interval) : range.to
  const missing = countBuckets(range.from, until, interval) - points
  return {
    asOf,
    headers: toSeriesHeaders(interval, points, missing),
  }
}
