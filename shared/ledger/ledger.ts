import type { Buckets } from '../buckets.ts'
import type { Dataset, DatasetFacts } from '../datasets/define-dataset.ts'
import type { DataError } from '../errors.ts'
import type { Interval, TimeRange } from '../intervals.ts'
import type { OnPart } from '../progress-bar.ts'
import type { Lane } from '../queue/lanes.ts'
import type { JobPayload } from '../queue/queues.ts'
import type { Entity } from '../registry/entities.ts'
import type { Registry } from '../registry/registry.ts'
import type { Database } from '../store/clickhouse.ts'
import type { Logger } from '../telemetry/log.ts'
import { readCompleteness, readUnserved } from './completeness.ts'
import { findMissingExpected, readExpected, recordExpected } from './expected.ts'
import { countMissing, explainMissing, readExplained } from './explain.ts'
import { recordMissed, withoutTried, writeFailed } from './missed.ts'
import { recordRun } from './record.ts'
import { addFromRows, findUnfounded } from './recount.ts'
import { removeUnfounded } from './repair.ts'
import { countCovered, noteComputed, noteStored, readDueUnits, readMissing, readNotes } from './tables.ts'
import { recountUpgraded } from './upgrade.ts'

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

/** The members of a dataset that the ledger needs. */
export interface LedgerDataset extends Pick<Dataset, LedgerMember> {
  readonly entity?: string
}

type LedgerMember =
  | 'name'
  | 'cadence'
  | 'series'
  | 'hasHistory'
  | 'hasOwnTimes'
  | 'resumes'
  | 'computedFrom'
  | 'lagsBehindSlot'
  | 'keepsNewest'
  | 'rowStep'

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

/**
 * Builds the coverage of a database that is older than the ledger, for every dataset with rows and without coverage.
 * Records the time since its first collection as expected. Safe to repeat; an interrupted call continues.
 */
export function upgradeLedgers(
  db: Database,
  datasets: readonly LedgerDataset[],
  log: Logger,
  now: number,
): Promise<void> {
  return recountUpgraded(db, datasets, log, now)
}

/** Returns a dataset's completeness. Throws if it was not read, because a default of 0 would be a false figure. */
export function completenessOf(
  all: ReadonlyMap<string, Completeness>,
  { name }: Pick<DatasetFacts, 'name'>,
): Completeness {
  const own = all.get(name)
  if (own === undefined) throw new Error(`the completeness of ${name} was not read`)
  return own
}

// Expected data

/** A range with expected data of an entity or of `ALL_ENTITIES`. `to` is `END_OF_TIME` for continuous collection. */
export interface ExpectedRange extends TimeRange {
  readonly entity: number
  /** The requested step. */
  readonly seconds: number
  /** Time of the latest request. */
  readonly requestedAt: number
}

export interface NewExpectedRange {
  readonly entity: number
  readonly from: number
  readonly to?: number
  readonly interval: Interval
}

/** Selects the due buckets of expected ranges. */
export interface ExpectedQuery {
  /** Default: all recorded ranges. */
  readonly ranges?: readonly ExpectedRange[]
  /** Limits the buckets to a part of the time. */
  readonly within?: TimeRange
  /** The longest step at which a bucket counts as known. `ANY_STEP` accepts all. */
  readonly seconds: number
  readonly now: number
}

// Results of runs

/** The results of a run of a job, before or without failures of single entities. */
export interface CollectedRun {
  readonly payload: JobPayload
  readonly results: readonly ProviderRows[]
  /** One answer per entity of the run. */
  readonly answers: readonly Answer[]
  readonly now: number
}

/** Result of one provider. */
export interface ProviderRows {
  readonly provider: string
  /** Rows that match the dataset's schema. */
  readonly rows: readonly object[]
  /** What was completely read of entities, with or without rows. */
  readonly read: readonly Reading[]
  readonly steps: readonly Step[]
}

/** The time up to which a source was completely read. */
export interface ReadTime {
  /**
   * Unix milliseconds; the reading continues without a gap from here. Undefined if it began at the source's first event
   * and always begins there again after its cursor is lost.
   */
  readonly from?: number | undefined
  /** Unix milliseconds, exclusive. */
  readonly to: number
}

/** What was completely read of an entity. */
export interface Reading extends ReadTime {
  readonly entity: number
}

/** Part of a range for which the provider only has a coarser step. `seconds` is that step. */
export interface Step extends TimeRange {
  readonly seconds: number
}

/**
 * Result of a run for one entity:
 * - `rows`: `provider` returned rows, or read the entity up to the slot;
 * - `nothing`: `provider` confirmed that it has no data in the range;
 * - `failed`: every provider that could answer failed, at least one with a transient error;
 * - `unserved`: no configured provider has the entity;
 * - `put-off`: the entity is scheduled for a later turn, or was read only in part.
 */
export interface Answer {
  readonly entity: Entity
  readonly state: 'rows' | 'nothing' | 'failed' | 'unserved' | 'put-off'
  readonly provider: string
  /** The first and the last provider's failure reason. Empty if the first provider answered. */
  readonly reason: string
  /**
   * A transient failure, also if a later provider answered. If there are several, the one with the shortest wait: a
   * monthly plan that is exhausted must not delay the retry of the next provider.
   */
  readonly failure: DataError | undefined
  /** Count and reason of elements that were not stored; empty if all were stored. */
  readonly omitted: string
}

/** A range that cannot be collected now. */
export interface FailedRange extends TimeRange {
  readonly reason: string
  readonly since: number
  readonly nextTry: number
}

export interface MissedSlots {
  /** The number of different slots that were recorded as missed. */
  readonly slots: number
  /** The number of entities with such slots. */
  readonly entities: number
}

// Records

/**
 * Buckets of an entity that a provider served at a step of `seconds`: their rows are stored, or they are known to be
 * empty.
 */
export interface Report extends Buckets {
  readonly entity: number
  readonly state: 'stored' | 'nothing'
  readonly provider: string
  readonly seconds: number
}

/**
 * Why buckets of an entity are not stored, or only at a coarser step, from `from` on up to `to` (`END_OF_TIME` while
 * the reason persists). `since` is when the first of its `tries` was made, and nothing is requested again before
 * `nextTry`, unless the settings of the providers have changed since the note was written. `coarser` in the `live`
 * class says that a stored bucket lacks elements of the provider's answer. A `missed` note has no tries.
 */
export interface Note extends TimeRange {
  readonly entity: number
  readonly lane: Lane
  readonly state: 'coarser' | 'failed' | 'unserved' | 'pending' | 'missed'
  readonly provider: string
  readonly reason: string
  readonly since: number
  readonly tries: number
  readonly nextTry: number
}

/** A note with the engine's time at which it was written. */
export interface StoredNote extends Note {
  readonly writtenAt: number
}

// Answers of the ledger

export interface MissingQuery {
  /** Sorted runs that do not overlap. */
  readonly expected: readonly Buckets[]
  readonly seconds: number
}

/** Expected buckets of an entity that are not covered. */
export interface Missing {
  readonly entity: Entity
  readonly runs: readonly Buckets[]
}

/** The number of known buckets of an entity. */
export interface Count {
  readonly entity: number
  /** At the requested step or a shorter one. */
  readonly stored: number
  readonly nothing: number
  /** Only at a longer step. */
  readonly coarser: number
}

/** The number of due buckets that are unknown at any step, by the state that explains them; `unserved` has missed ones. */
export interface MissingCounts {
  pending: number
  failed: number
  unserved: number
}

export type BucketState = 'covered' | 'coarser' | 'nothing' | 'pending' | 'failed' | 'unserved' | 'missed'

/** A run of buckets with the same state. `seconds` is the step of the stored rows, `since` when its tries began. */
export interface Explained extends Buckets {
  readonly state: BucketState
  readonly provider: string | null
  readonly seconds: number | null
  readonly reason: string | null
  readonly since: number | null
}

/** A run of buckets that are missing, or stored only at a step that is too long. */
export interface ExplainedMissing extends Buckets {
  readonly entity: Entity
  readonly state: 'coarser' | 'pending' | 'failed' | 'unserved' | 'missed'
  readonly reason: string
}

export interface ExplainQuery {
  readonly within: Buckets
  readonly now: number
  /** The limit of coverage records that are read. */
  readonly most: number
  /** Whether data of the entity is expected at all. Default: of each entity. */
  readonly isCollected?: (entity: Entity) => boolean
}

/** Entities whose missing buckets are within the same runs. */
export interface Lacking {
  readonly entities: readonly Entity[]
  readonly runs: readonly Buckets[]
}

/** An overdue entity: its newest stored bucket is more than 1.5 cadences old. */
export interface OverdueEntity {
  readonly entity: Entity
  /** The reason of the newest attempt; null without one. */
  readonly reason: string | null
}

/** State of a dataset up to now. Counts are of buckets over all entities. */
export interface Completeness {
  /** Buckets that are expected and due, without buckets known to be empty. */
  readonly expected: number
  /** The stored ones of these, at any step. */
  readonly stored: number
  /** The share of `expected` that is stored, 0 to 1; 0 if no bucket is stored. */
  readonly complete: number
  /** Entities with missing expected buckets. */
  readonly lacking: readonly Lacking[]
  /** Entities that a provider serves, but whose newest slots are missing. */
  readonly overdue: readonly OverdueEntity[]
  /** Whether no provider serves any entity, for example because the key of the only provider is missing. */
  readonly isUnserved: boolean
}
