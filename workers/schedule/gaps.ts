import { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import { INTERVAL_SECONDS, type Interval, toBucketStart } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Entity, Job, TimeRange } from '../job/define-job.ts'
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

const hole = z.object({ before: z.int(), after: z.int() })

/** Buckets of 7 days begin on Mondays, 1970-01-05 being the first one. */
const toShiftSeconds = (interval: Interval) => toBucketStart(0, interval) / 1000 + INTERVAL_SECONDS[interval]

/** The holes between an entity's first and last stored bucket, as `toGaps` takes them. */
export async function readHoles(
  db: Database,
  { series }: Pick<DatasetFacts, 'series'>,
  entity: Entity,
  interval: Interval,
): Promise<[number, number][]> {
  // A series about all entities together has no column for them.
  const column: string | undefined = series.entity
  const rows = await db.rows({
    name: 'holes',
    sql: `SELECT toInt64(bucket) + {step: Int64} AS before, toInt64(next) AS after
FROM
(
  SELECT bucket, leadInFrame(bucket, 1, bucket) OVER (ORDER BY bucket ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS next
  FROM
  (
    SELECT DISTINCT intDiv(toInt64(toUnixTimestamp(toDateTime(${series.time}, 'UTC'))) - {shift: Int64}, {step: Int64}) * {step: Int64} + {shift: Int64} AS bucket
    FROM ${series.table}
    WHERE ${column === undefined ? '1' : `${column} = {entity: UInt64}`}
  )
)
WHERE next - bucket > {step: Int64}
ORDER BY before`,
    params: {
      entity: entity.key,
      step: INTERVAL_SECONDS[interval],
      shift: toShiftSeconds(interval) % INTERVAL_SECONDS[interval],
    },
    schema: hole,
  })
  return rows.map(({ before, after }) => [before * 1000, after * 1000])
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
    return planChunks(job, entities, { from, to, interval })
  })
  return [...new Map(chunks.map((chunk) => [chunk.id, chunk])).values()]
}
