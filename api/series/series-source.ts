import type { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import { INTERVAL_SECONDS, type Interval, MONDAY_SHIFT_MS } from '../../shared/intervals.ts'
import { toObject } from '../records/columns.ts'
import { type Constants, toFilledSchema, toFilledValues } from './filled.ts'

/** A series as statements, of which answers of any order, interval and number of points are made. */
export interface SeriesSource {
  /** What logs and traces call the statements. */
  readonly name: string
  /** Whose cadence says when the series is stale. */
  readonly dataset: DatasetFacts
  readonly record: z.ZodObject
  /** The member that says when, which stays where a row is filled in. */
  readonly time: string
  /** Members that are the same in every row, as SQL. */
  readonly constants?: Constants
  readonly intervals: readonly [Interval, ...Interval[]]
  /**
   * The points whose buckets start in a range (parameters `from` and `to`, Unix milliseconds) in no order: `row_at`, `as_of` (both
   * DateTime64(3)) and `record`. Unless there are points of each interval, those of the finest one, of which the first of a coarser
   * bucket stands for it.
   */
  sql(interval: Interval): string
  readonly params: Readonly<Record<string, unknown>>
  /**
   * Selects `newest`, up to when the rows were read (Unix milliseconds), where they are read on time and yet seldom new; else
   * the series is as old as its newest row.
   */
  readonly readUpTo?: string
  /** Set where an interval has points in other buckets than the finest one has. */
  readonly hasOwnPoints?: boolean
}

/** All grids begin on the first Monday (docs/contract.md, section 4). */
export const toBucketSql = (at: string, interval: Interval) => {
  const ms = `toUnixTimestamp64Milli(${at})`
  return `fromUnixTimestamp64Milli(${ms} - (${ms} - ${MONDAY_SHIFT_MS}) % ${INTERVAL_SECONDS[interval] * 1000}, 'UTC')`
}

/** The record of a row `p` with the bucket's start as its time (docs/contract.md, section 4). */
function toBucketRecord({ record, time, intervals: [finest] }: SeriesSource, interval: Interval): string {
  if (interval === finest) return 'p.record'
  const values = Object.keys(record.shape).map((name) =>
    name === time ? 'bucket' : `tupleElement(p.record, '${name}')`,
  )
  return toObject(record, values.join(', '))
}

/** One point per bucket: `bucket`, `as_of`, `record`. */
export const toPointsSql = (source: SeriesSource, interval: Interval) => `
SELECT ${toBucketSql('p.row_at', interval)} AS bucket, p.as_of AS as_of, ${toBucketRecord(source, interval)} AS record
FROM (${source.sql(interval)}) AS p
ORDER BY p.row_at
LIMIT 1 BY bucket`

/**
 * Every bucket of the range that is due, before the parameter `due`, or has a point: `bucket`, `as_of` and `record` as with a point,
 * and whether there is one.
 */
export const toFilledSql = (source: SeriesSource, interval: Interval) => `
SELECT grid.bucket AS bucket, if(p.is_there, p.as_of, toDateTime64(0, 3, 'UTC')) AS as_of, p.is_there AS is_there,
  ${toObject(toFilledSchema(source), toFilledValues(source, 'p.record', 'p.is_there', 'grid.bucket'))} AS record
FROM
(
  SELECT fromUnixTimestamp64Milli({from: Int64} + number * {step: Int64}, 'UTC') AS bucket FROM numbers({buckets: UInt64})
) AS grid
LEFT JOIN (SELECT *, true AS is_there FROM (${toPointsSql(source, interval)})) AS p ON p.bucket = grid.bucket
WHERE p.is_there OR toUnixTimestamp64Milli(grid.bucket) < {due: Int64}`
