import { INTERVAL_SECONDS, type Interval, type TimeRange, toBucketStart } from '../../shared/intervals.ts'
import type { Entity, Job } from '../job/define-job.ts'
import { type Chunk, planChunks } from './chunks.ts'

/** A range in which buckets are missing. */
export interface Gap extends TimeRange {
  /** Number of missing buckets; the other buckets of the range are stored. */
  readonly missing: number
}

export interface EntityGap extends Gap {
  readonly entity: Entity
}

/** Holes with at most this many buckets between them are one gap: one request per hole would cost more. */
const WITHIN_BUCKETS = 12

/**
 * Joins neighbouring holes. Each hole is [first missing bucket, next stored bucket) in Unix milliseconds, in order, and
 * is clipped to the range.
 */
export function toGaps(
  holes: readonly (readonly [from: number, to: number])[],
  interval: Interval,
  range: TimeRange,
): Gap[] {
  const step = INTERVAL_SECONDS[interval] * 1000
  const gaps: Gap[] = []
  for (const [start, end] of holes) {
    const from = Math.max(start, toBucketStart(range.from + step - 1, interval))
    const to = Math.min(end, toBucketStart(range.to + step - 1, interval))
    if (from >= to) continue
    const missing = (to - from) / step
    const last = gaps.at(-1)
    if (last !== undefined && from - last.to <= WITHIN_BUCKETS * step)
      gaps[gaps.length - 1] = { from: last.from, to, missing: last.missing + missing }
    else gaps.push({ from, to, missing })
  }
  return gaps
}

/** Returns the step of the dataset's gap search: its cadence, or the finest step of its history. */
export function toGapInterval(job: Job): Interval {
  const intervals = job.history?.intervals ?? []
  return intervals.includes(job.cadence) ? job.cadence : (intervals[0] ?? job.cadence)
}

/**
 * Returns the jobs that collect gaps again; entities with the same gap share jobs. Empty if the dataset has no history
 * at this interval.
 */
export function planRepair(job: Job, gaps: readonly EntityGap[], interval: Interval): Chunk[] {
  if (!job.history?.intervals.includes(interval)) return []
  const byRange = new Map<string, EntityGap[]>()
  for (const gap of gaps) {
    const key = `${gap.from} ${gap.to}`
    const same = byRange.get(key)
    if (same === undefined) byRange.set(key, [gap])
    else same.push(gap)
  }
  const chunks = [...byRange.values()].flatMap((same) => {
    const [{ from, to } = { from: 0, to: 0 }] = same
    const entities = same.map(({ entity }) => entity)
    // Requests the whole bucket of the step, because its first observation may lie before the gap.
    return planChunks(job, entities, { from: toBucketStart(from, interval), to, interval })
  })
  return [...new Map(chunks.map((chunk) => [chunk.id, chunk])).values()]
}
