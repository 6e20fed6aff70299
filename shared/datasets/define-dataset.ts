import type { z } from 'zod'
import type { Cadence } from '../intervals.ts'

/** What is stored under one name: the row's schema, the table rows are inserted into, and where freshness is read. */
export interface Dataset<Row extends object = object> {
  readonly name: string
  readonly cadence: Cadence
  /** The table that jobs insert into. */
  readonly table: string
  readonly row: z.ZodType<Row>
  /** The row member that names the entity, by its integer key; absent where a row is about all of them together. */
  readonly entity?: keyof Row & string
  /**
   * Statements that the runner executes after the insert, for tables that are computed from what is stored. They get
   * `{entities: Array(UInt64)}`, the keys of the inserted rows, `{read: Array(UInt64)}`, the keys of those that were
   * read up to the slot, rows or not, and `{slot: DateTime64(3)}`, and may be repeated.
   */
  readonly derive?: readonly {
    readonly name: string
    readonly sql: string
    /** Whether it makes every row of its table, so that the table can be computed anew. */
    readonly isWhole: boolean
  }[]
  /**
   * The stored series whose rows, entities, earliest and newest time `/data/status` and the scheduler read. Where a job
   * is computed from the dataset, `time` is a member of the inserted row as well. `source` is a column that names where
   * a row comes from, where the status shows it.
   */
  readonly series: {
    readonly table: string
    readonly entity?: string
    readonly time: string
    readonly source?: string
  }
}

/** Declares a dataset; the row type follows from its schema. */
export function defineDataset<Row extends object>(dataset: Dataset<Row>): Dataset<Row> {
  return dataset
}
