import type { z } from 'zod'
import { type Cadence, END_OF_TIME, type Interval } from '../intervals.ts'
import type { Entity } from '../registry/entities.ts'
import type { Registry } from '../registry/registry.ts'

/** The members of any row type of a dataset. */
type MemberOf<Row> = Row extends unknown ? keyof Row & string : never

/** A dataset: the schema of its rows, the table for inserts, and the source of its freshness. */
export interface Dataset<Row extends object = object, E extends Entity = Entity> {
  readonly name: string
  /** Its name on the page, such as `Token holders`. */
  readonly title: string
  readonly cadence: Cadence
  /** The target table of jobs. */
  readonly table: string
  readonly row: z.ZodType<Row>
  /** The entities with expected data. */
  entities(registry: Registry): readonly E[]
  /**
   * Set if `entities` of the dataset or of its job reads the registry's DAOs. A worker loads them if one of its
   * datasets needs them.
   */
  readonly needsDaos?: true
  /** The row member with the entity's integer key; absent if rows are about all entities together. */
  readonly entity?: keyof Row & string
  /**
   * The members that may be null or empty lists. If such a value is out of bounds, it is dropped and the row is stored.
   */
  readonly dispensable?: readonly MemberOf<Row>[]
  /** Names the parts that a stored row lacks, for the reason in the coverage; an empty text if it lacks none. */
  nameOmitted?(row: Row): string
  /**
   * Set if the table has `collected_at`, the start of the run that collected the row; the runner adds it. If two rows
   * have the same key, the one collected later wins, regardless of the order of inserts. Derived tables have the time
   * in their own rows.
   */
  readonly isCollected?: true
  /** Set if the table has the column `provider`; the runner adds it. */
  readonly isAttributed?: true
  /**
   * Set if rows have the source's observation times instead of the slot. A slot then fills the bucket before its own.
   */
  readonly hasOwnTimes?: true
  /**
   * Set if a row's time may be up to a cadence before its slot, like that of a block. The row fills the slot's bucket,
   * which is its own or the next one.
   */
  readonly lagsBehindSlot?: true
  /**
   * Set if each run continues from a stored cursor and has rows only for new events. The read itself then proves that
   * an entity was collected, for the time since its cursor began.
   */
  readonly resumes?: true
  /**
   * Set if the provider's answers contain texts of people that the rows do not. The answers are then not stored longer
   * than those that can be fetched again.
   */
  readonly hasTextsOfPeople?: true
  /** Set if the rows are spread over several tables and a replay can compare them. */
  readonly storedRows?: StoredRows
  /** The input datasets. When their rows are stored, the days of these rows are recomputed. */
  readonly computedFrom?: readonly DatasetFacts[]
  /**
   * Set if the series' table contains only the newest row of each key. A row then proves a collection at its time, and
   * its absence proves nothing about earlier times.
   */
  readonly keepsNewest?: true
  /**
   * The step of a stored row, for coverage that is rebuilt from rows; default: the cadence. A list has the longer steps
   * at which providers serve history, shortest first; the number of rows of a day decides. `rotation`: entities are
   * collected in turn, so a row is valid until the next one of its entity, at most a day.
   */
  readonly rowStep?: readonly Interval[] | 'rotation'
  /** Set if providers have history, so that a back-fill can collect missing data (`history` of the job). */
  readonly hasHistory?: true
  /**
   * Statements that the runner executes after the insert, in this order, to update derived tables. Parameters:
   * `toDeriveParams`. Safe to repeat.
   */
  readonly derive?: readonly {
    readonly name: string
    readonly sql: string
    /** Whether the statement creates every row of its table, so that the table can be rebuilt. */
    readonly isFull: boolean
  }[]
  /**
   * The stored series: `/data/status` and the scheduler read its rows, entities, earliest and newest time. If a job is
   * computed from the dataset, `time` is also a member of the inserted row. `source` is the column with the row's
   * source, if the status shows it. `provider` is SQL for the provider of a stored row, null if it is unknown: the
   * `source` of its points (`include=source`).
   */
  readonly series: {
    readonly table: string
    readonly entity?: string
    readonly time: string
    readonly source?: string
    readonly provider?: string
  }
}

/** How the rows of a dataset that are stored in several tables are read back, to compare them with decoded rows. */
export interface StoredRows {
  /** ClickHouse types of the compared columns. `provider` is that of the row. */
  readonly columns: Readonly<Record<string, string>>
  /** The columns that identify a row. */
  readonly keys: readonly string[]
  /**
   * SQL for the rows from `{from: DateTime64(3, 'UTC')}` to `{to: ...}` (both inclusive): the columns, and `collected_at_ms`,
   * the start of the run: one of `{runs: Array(Int64)}`, or about that time. All in Unix milliseconds.
   */
  readonly sql: string
  /** Values that decoded rows have if they lack a column. */
  readonly defaults: Readonly<Record<string, unknown>>
  /** Of two rows with the same key, the one with the higher rank is stored, regardless of its time of collection. */
  rank(row: Readonly<Record<string, unknown>>): number
  /** Whether a row stays that no run decodes: an operator may have stored it. */
  isKept(row: Readonly<Record<string, unknown>>): boolean
}

/** The input of a dataset's derived tables. Times are Unix milliseconds. */
export interface Derivation {
  /** The keys of the inserted rows. */
  readonly entities: readonly number[]
  /** The keys of entities that were read up to the slot, with or without rows. */
  readonly read: readonly number[]
  readonly slot: number
  /** The earliest and the latest time of the inserted rows; absent for all times. */
  readonly from?: number
  readonly to?: number
}

/** A range around all collected times. */
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

/** SQL for the provider of a row with the column `provider`, which is empty in rows of versions that did not store it. */
export const STORED_PROVIDER = "nullIf(toString(provider), '')"

/** SQL for the provider of all rows of a dataset that never had another one. */
export const DEFILLAMA = "'defillama'"

/** Declares a dataset and infers the row type from its schema. */
export function defineDataset<Row extends object, E extends Entity>(dataset: Dataset<Row, E>): Dataset<Row, E> {
  return dataset
}

/** The members of a dataset that readers need: name, cadence, entities and the location of its rows. */
export type DatasetFacts = Pick<
  Dataset,
  'name' | 'title' | 'cadence' | 'series' | 'entities' | 'hasOwnTimes' | 'hasHistory' | 'resumes' | 'computedFrom'
>
