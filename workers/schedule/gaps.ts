import { INTERVAL_SECONDS, type Interval, type TimeRange, toBucketStart } from '../../shared/intervals.ts'
import type { Entity, Job } from '../job/define-job.ts'
import { type Chunk, planChunks } from './chunks.ts'

/** A range in which buckets are missing. */
export interface Gap extends TimeRange {
  /** How many buckets are missing; the others in it are there. */
  readonly missing: number
}

export interface EntityGap extends Gap {
  readonly entity: Entity
}

/** Two holes with at most this many buckets between them are one gap: a request for each hole would cost more. */
const WITHIN_BUCKETS = 12

/**
 * Joins holes that lie close together. The holes are [first missing bucket, next stored one), in Unix milliseconds and
 * in order; only what lies in the range counts.
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

/** The grid on which a dataset's gaps are looked for: its cadence, or the finest step at which its history has any. */
export function toGapInterval(job: Job): Interval {
  const intervals = job.history?.intervals ?? []
  return intervals.includes(job.cadence) ? job.cadence : (intervals[0] ?? job.cadence)
}

/**
 * The jobs that collect gaps again: entities with the same gap share theirs. None where the dataset has no history at
 * this interval.
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
    // A bucket of the step is asked for as a whole: its first observation may lie before the gap.
    return planChunks(job, entities, { from: toBucketStart(from, interval), to, interval })
  })
  return [...new Map(chunks.map((chunk) => [chunk.id, chunk])).values()]
}
