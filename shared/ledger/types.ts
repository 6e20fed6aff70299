import type { Buckets } from '../buckets.ts'
import type { Dataset } from '../datasets/define-dataset.ts'
import type { DataError } from '../errors.ts'
import type { Interval, TimeRange } from '../intervals.ts'
import type { QueueClass } from '../queue/queue-classes.ts'
import type { JobPayload } from '../queue/queues.ts'
import type { Entity } from '../registry/entities.ts'

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
  /** The entities that were completely read, with or without rows, and the range of the reading. */
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

/** The range of an entity that was completely read. */
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
 * class means that a stored bucket lacks elements of the provider's answer. A `missed` note has no tries.
 */
export interface Note extends TimeRange {
  readonly entity: number
  readonly queueClass: QueueClass
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
