import type { z } from 'zod'
import { type Cadence, END_OF_TIME } from '../intervals.ts'
import type { Entity } from '../registry/entities.ts'
import type { Registry } from '../registry/registry.ts'
import type { DatasetFacts } from './list.ts'

/** The members of any kind of row that a dataset has. */
type MemberOf<Row> = Row extends unknown ? keyof Row & string : never

/** What is stored under one name: the row's schema, the table rows are inserted into, and where freshness is read. */
export interface Dataset<Row extends object = object, E extends Entity = Entity> {
  readonly name: string
  readonly cadence: Cadence
  /** The table that jobs insert into. */
  readonly table: string
  readonly row: z.ZodType<Row>
  /** Whom it is collected for: of each of them there should be data. */
  entities(registry: Registry): readonly E[]
  /** Set where `entities`, of the dataset or of its job, reads the registry's DAOs: a worker reads them where one is. */
  readonly needsDaos?: true
  /** The row member that names the entity, by its integer key; absent where a row is about all of them together. */
  readonly entity?: keyof Row & string
  /** The members that may be unknown, or empty lists: a row keeps the others where such a value is outside what can be. */
  readonly dispensable?: readonly MemberOf<Row>[]
  /**
   * Set where the table's rows say in `collected_at` when the run began that collected them; the runner adds it. Of two
   * rows of one key the one that was collected later stays, whichever is stored last. What is computed from stored rows
   * says so in its own rows.
   */
  readonly isCollected?: true
  /** Set where rows carry the times at which the source observed them, not the slot: a slot fills the bucket before its own. */
  readonly hasOwnTimes?: true
  /**
   * Set where a row's time may lie up to a cadence before the slot that it was collected in, as a block of a chain does: it
   * fills the slot's bucket, which is its own or the one after it.
   */
  readonly lagsBehindSlot?: true
  /**
   * Set where each run goes on from a stored cursor and has rows only when something happened. What tells that an entity
   * was collected is then that it was read, and it means all the time since it was read before.
   */
  readonly resumes?: true
  /** The datasets that it is computed from: when rows of theirs are stored, the days of those rows are computed again. */
  readonly computedFrom?: readonly DatasetFacts[]
  /**
   * Set where the series' table keeps only the newest row of each key, whatever its time: rows prove that an entity was
   * collected at their time, and do not disprove it for any time before.
   */
  readonly keepsNewest?: true
  /** Set where providers have history, so that a back-fill can collect what is missing (`history` of the job). */
  readonly hasHistory?: true
  /**
   * Statements that the runner executes after the insert, in this order, for tables that are computed from what is stored.
   * They get what `toDeriveParams` makes, and may be repeated.
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

/** What a dataset's derived tables are computed for. Times are Unix milliseconds. */
export interface Derivation {
  /** The keys of the inserted rows. */
  readonly entities: readonly number[]
  /** The keys of those that were read up to the slot, rows or not. */
  readonly read: readonly number[]
  readonly slot: number
  /** The earliest and the latest time of the inserted rows; without them, all there is. */
  readonly from?: number
  readonly to?: number
}

/** Before the first and after the last day of anything that is collected. */
const ALL_TIMES = { from: 0, to: END_OF_TIME }

/**
 * The parameters of `derive`: `{entities: Array(UInt64)}`, `{read: Array(UInt64)}`, and `{slot: DateTime64(3, 'UTC')}`,
 * `{from: ...}` and `{to: ...}` of the same type.
 */
export function toDeriveParams({ entities, read, ...times }: Derivation): Readonly<Record<string, unknown>> {
  const { slot, from, to } = { ...ALL_TIMES, ...times }
  const toText = (ms: number) => new Date(ms).toISOString().slice(0, -1)
  return { entities, read, slot: toText(slot), from: toText(from), to: toText(to) }
}

/** Declares a dataset; the row type follows from its schema. */
export function defineDataset<Row extends object, E extends Entity>(dataset: Dataset<Row, E>): Dataset<Row, E> {
  return dataset
}
