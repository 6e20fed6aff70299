import type { Buckets } from '../buckets.ts'
import type { DatasetFacts } from '../datasets/define-dataset.ts'
import type { TimeRange } from '../intervals.ts'
import type { OnPart } from '../progress-bar.ts'
import type { Entity } from '../registry/entities.ts'
import type { Registry } from '../registry/registry.ts'
import type { Database } from '../store/store.ts'
import { readCompleteness, readUnserved } from './completeness.ts'
import { findMissingExpected, readExpected, recordExpected } from './expected.ts'
import { countMissing, explainMissing, readExplained } from './explain.ts'
import { recordMissed, withoutTried, writeFailed } from './missed.ts'
import { recordRun } from './record.ts'
import { addFromRows } from './recount.ts'
import { removeUnfounded } from './repair.ts'
import { countCovered, noteComputed, noteStored, readDueUnits, readMissing, readNotes } from './tables.ts'
import type {
  CollectedRun,
  Completeness,
  Count,
  ExpectedQuery,
  ExpectedRange,
  Explained,
  ExplainedMissing,
  ExplainQuery,
  FailedRange,
  Lacking,
  LedgerDataset,
  MissedSlots,
  Missing,
  MissingCounts,
  MissingQuery,
  NewExpectedRange,
  Report,
  StoredNote,
} from './types.ts'
import { findUnfounded } from './unfounded.ts'

export type {
  Answer,
  BucketState,
  CollectedRun,
  Completeness,
  Count,
  ExpectedQuery,
  ExpectedRange,
  Explained,
  ExplainedMissing,
  ExplainQuery,
  FailedRange,
  Lacking,
  LedgerDataset,
  MissedSlots,
  Missing,
  MissingCounts,
  MissingQuery,
  NewExpectedRange,
  Note,
  OverdueEntity,
  ProviderRows,
  Reading,
  ReadTime,
  Report,
  Step,
  StoredNote,
} from './types.ts'

/**
 * The ledger records in ClickHouse which data of each dataset and entity is expected, which of it is stored, and why the
 * rest is missing. The rows of a dataset cannot say this. Every reader of the ledger uses this file; the other files of
 * the folder are its inside.
 *
 * Time is divided into buckets of the dataset's cadence (shared/buckets.ts). The state of a bucket:
 *
 *   covered   stored at the requested step or a shorter one
 *   coarser   stored, but only at a longer step
 *   nothing   read, and the provider has no data there
 *   pending   not due yet, going to be collected, or not available from the provider yet
 *   failed    every provider that could answer failed; collected again later
 *   unserved  no provider has it, or it was never requested
 *   missed    not collected in time, and no provider has its history: permanently missing
 *
 * Three words for lacking data: a bucket is missing, a slot is missed, an entity is overdue (its newest value is old).
 *
 * Invariants:
 *   - Rows are stored before their coverage is recorded, so a covered bucket always has its rows.
 *   - Repeating any write changes nothing, so a run may stop and restart at any point.
 *   - A reading that resumes from a cursor covers only what it has read, from where its own cursor began.
 *   - Coverage only grows, except by `removeUnfounded`.
 *   - Notes explain, coverage decides: a stored bucket is covered whatever its notes are.
 *
 * All times are Unix milliseconds. Entities are given by their keys in ClickHouse. Every method throws DataError
 * `storage` if ClickHouse fails.
 */
export interface Ledger {
  // Expected

  /** Returns the recorded ranges with expected data, earliest first. */
  expected(): Promise<readonly ExpectedRange[]>
  /** Records that data is expected: of an entity, or of `ALL_ENTITIES`. Without `to`, collection is continuous. */
  expect(ranges: readonly NewExpectedRange[]): Promise<void>

  // Record

  /**
   * Records what a run collected and why the rest of its entities has no data. Call it only after the rows are stored
   * and all dependent computations are noted: covered entities are not collected again.
   */
  record(run: CollectedRun): Promise<void>
  /** Records that a range cannot be collected before `nextTry`, for example because its job crashes the workers. */
  recordFailed(entities: readonly number[], failed: FailedRange): Promise<void>
  /**
   * Records missing buckets that no provider can serve any more as missed, once. If their rows are stored (a worker may
   * have died before it recorded them), records the coverage instead. `provider` is the provider of such rows.
   */
  recordMissed(missing: readonly Missing[], options: { provider: string; now: number }): Promise<MissedSlots>

  // Missing

  /**
   * Returns the runs of `expected` that are neither stored nor known to be empty at a step of at most `seconds`, by
   * entity. Entities without missing buckets are left out.
   */
  missing(entities: readonly number[], query: MissingQuery): Promise<Map<number, Buckets[]>>
  /** Returns the missing buckets among the due buckets of the expected ranges. Entities without any are left out. */
  missingExpected(entities: readonly Entity[], query: ExpectedQuery): Promise<Missing[]>
  /**
   * Returns the missing buckets to request now: those never tried, those whose pause is over, and those noted before
   * `providersChangedAt`, because other settings may succeed.
   */
  withoutTried(missing: readonly Missing[], at: { now: number; providersChangedAt: number }): Promise<Missing[]>
  /** Counts the known buckets of entities within a run of buckets. Entities without any are left out. */
  count(entities: readonly number[], query: { within: Buckets; seconds: number }): Promise<Count[]>
  /** Counts the missing buckets of incomplete entities by the state that explains them. */
  countMissing(lacking: readonly Lacking[], now: number): Promise<MissingCounts>

  // Explain

  /**
   * Returns the state of every bucket of a range, by entity, as runs without gaps or overlaps. Undefined if more than
   * `most` records would have to be read.
   */
  explain(entities: readonly Entity[], query: ExplainQuery): Promise<ReadonlyMap<number, Explained[]> | undefined>
  /** Returns the missing and coarser buckets among the due buckets of the expected ranges, with their states. */
  explainMissing(entities: readonly Entity[], query: ExpectedQuery): Promise<ExplainedMissing[]>
  /** Returns the notes about any time of a range, the one written last first. */
  notes(entities: readonly number[], range: TimeRange): Promise<StoredNote[]>

  // Computed datasets

  /**
   * Records that inputs of these times of a computed dataset were stored. Call it after the insert and before the job
   * completes, so that a computation that is lost with the queues is found by its record.
   */
  noteStored(ranges: readonly TimeRange[]): Promise<void>
  /** Records that the complete units of a range were computed from rows stored by `readAt`, in ClickHouse's time. */
  noteComputed(range: TimeRange, readAt: number): Promise<void>
  /** Returns the units whose inputs were stored after their computation and at least `settleMs` ago, oldest first. */
  dueUnits(settleMs: number): Promise<TimeRange[]>

  // Comparison with the rows

  /**
   * Adds the buckets of stored rows that the coverage lacks. Does nothing for datasets that resume from cursors, because
   * rows prove only a part of their coverage. Returns the number of added buckets.
   */
  addFromRows(now: number, onBatch?: OnPart): Promise<number>
  /**
   * Returns the buckets that are recorded as stored but have no row. Of a dataset that resumes from cursors: the buckets
   * that an earlier version may have recorded without reading them, until they are removed.
   */
  findUnfounded(onBatch?: OnPart): Promise<Report[]>
  /** Removes buckets from the coverage, so that they are collected again. */
  removeUnfounded(unfounded: readonly Report[]): Promise<void>
}

/** The ledgers of several datasets, for overviews that read all of them with few statements. */
export interface Ledgers {
  /** Returns the completeness of each dataset, by its name. All entities of the registry count. */
  completeness(registry: Registry, now: number): Promise<ReadonlyMap<string, Completeness>>
  /** Returns the names of datasets for which no provider serves any entity, for example because a key is missing. */
  unserved(registry: Registry, now: number): Promise<ReadonlySet<string>>
}

/** Opens the ledger of a dataset. */
export const openLedger = (db: Database, dataset: LedgerDataset): Ledger => ({
  expected: () => readExpected(db, dataset),
  expect: (ranges) => recordExpected(db, dataset, ranges),
  record: (run) => recordRun(db, dataset, run),
  recordFailed: (entities, failed) => writeFailed(db, dataset, entities, failed),
  recordMissed: (missing, options) => recordMissed(db, dataset, missing, options),
  missing: (entities, query) => readMissing(db, dataset, entities, query),
  missingExpected: (entities, query) => findMissingExpected(db, dataset, entities, query),
  withoutTried: (missing, at) => withoutTried(db, dataset, missing, at),
  count: (entities, query) => countCovered(db, dataset, entities, query),
  countMissing: (lacking, now) => countMissing(db, dataset, lacking, now),
  explain: (entities, query) => readExplained(db, dataset, entities, query),
  explainMissing: (entities, query) => explainMissing(db, dataset, entities, query),
  notes: (entities, range) => readNotes(db, dataset, entities, range),
  noteStored: (ranges) => noteStored(db, dataset, ranges),
  noteComputed: (range, readAt) => noteComputed(db, dataset, range, readAt),
  dueUnits: (settleMs) => readDueUnits(db, dataset, settleMs),
  addFromRows: (now, onBatch) => addFromRows(db, dataset, now, onBatch),
  findUnfounded: (onBatch) => findUnfounded(db, dataset, onBatch),
  removeUnfounded: (unfounded) => removeUnfounded(db, dataset, unfounded),
})

/** Opens the ledgers of several datasets. */
export const openLedgers = (db: Database, datasets: readonly DatasetFacts[]): Ledgers => ({
  completeness: (registry, now) => readCompleteness(db, registry, datasets, now),
  unserved: (registry, now) => readUnserved(db, registry, datasets, now),
})

/** Returns a dataset's completeness. Throws if it was not read, because a default of 0 would be a false figure. */
export function completenessOf(
  all: ReadonlyMap<string, Completeness>,
  { name }: Pick<DatasetFacts, 'name'>,
): Completeness {
  const own = all.get(name)
  if (own === undefined) throw new Error(`the completeness of ${name} was not read`)
  return own
}
