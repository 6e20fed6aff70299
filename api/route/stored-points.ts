import type { ReadFor } from '../../shared/batcher.ts'
import type { Interval, TimeRange } from '../../shared/intervals.ts'
import type { StoredRows } from '../prices/stored-rows.ts'

/** Complete buckets of a token, by its key. */
export interface PointsRange extends TimeRange {
  readonly token: number
}

/** Reads the stored rows of short ranges of tokens, by interval. */
export type StoredPoints = Readonly<Record<Interval, ReadFor<PointsRange, StoredRows>>>
