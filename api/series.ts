import { countBuckets, INTERVAL_SECONDS, type Interval, toBucketStart } from '../shared/intervals.ts'

/** The grid times that a series covers, in Unix milliseconds: whole buckets that start in [start, end). */
export interface SeriesRange {
  readonly from: number
  readonly to: number
  /** Where the wanted range ends: the end that was asked for, or now if that is earlier. */
  readonly closesAt: number
}

/** Observations come at least this often, whatever the interval (contract section 7). */
const CADENCE_MS = INTERVAL_SECONDS['5m'] * 1000

const nextStart = (ms: number, interval: Interval) =>
  toBucketStart(ms - 1, interval) + INTERVAL_SECONDS[interval] * 1000

/** The whole buckets whose starts lie in [start, end), end being now by default (contract section 4). */
export function toSeriesRange(
  query: { start: number; end?: number | undefined; interval: Interval },
  now: number,
): SeriesRange {
  const end = query.end ?? now
  return {
    from: nextStart(query.start, query.interval),
    to: nextStart(end, query.interval),
    closesAt: Math.min(end, now),
  }
}

/** The next moment at which a bucket of any interval begins: coarser grids are parts of the finest one. */
export function nextGridTime(now: number): number {
  return nextStart(now + 1, '5m')
}

/**
 * Headers and freshness of a series answer. Buckets are counted up to where the range closes, or up to the last point
 * when `limit` cut the answer there. A series is stale when its next point is overdue by a cadence while the range is
 * still open; one that ends in the past never is.
 */
export function describeSeries(series: {
  interval: Interval
  range: SeriesRange
  end?: number | undefined
  limit?: number | undefined
  points: number
  asOf: number | null
}): { asOf: number | null; staleAt: number | null; headers: Record<string, string> } {
  const { interval, range, points, asOf } = series
  const cut = asOf !== null && points === series.limit
  const until = cut ? toBucketStart(asOf, interval) + 1 : range.closesAt
  const missing = Math.max(0, countBuckets(range.from, until, interval) - points)
  const dueAt = asOf === null ? null : asOf + INTERVAL_SECONDS[interval] * 1000 + CADENCE_MS
  return {
    asOf,
    staleAt: cut || dueAt === null || dueAt >= (series.end ?? Number.POSITIVE_INFINITY) ? null : dueAt,
    headers: {
      'X-Series-Interval': interval,
      'X-Series-Points': String(points),
      'X-Series-Missing': String(missing),
    },
  }
}
