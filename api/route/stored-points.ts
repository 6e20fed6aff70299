import type { ReadFor } from '../../shared/batcher.ts'
import type { Interval, TimeRange } from '../../shared/intervals.ts'

/** The values of one column of some rows. */
export interface Column {
  /** A byte for each row: 1 if its value is null. Null if no value can be null. */
  readonly nulls: Uint8Array | null
  /** The values as ClickHouse stores them: integers and floats of `width` bytes, little-endian. */
  readonly data: Uint8Array
  readonly width: number
}

/** Rows of a table of prices by column, ordered by token and time. */
export interface StoredRows {
  readonly count: number
  /** The columns by name, in their order. */
  readonly columns: ReadonlyMap<string, Column>
}

/** Complete buckets of a token, by its key. */
export interface PointsRange extends TimeRange {
  readonly token: number
}

/** Reads the stored rows of short ranges of tokens, by interval. */
export type StoredPoints = Readonly<Record<Interval, ReadFor<PointsRange, StoredRows>>>
