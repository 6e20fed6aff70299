import type { Config } from '../../shared/config/config.ts'
import type { Dataset, DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { DataError } from '../../shared/errors.ts'
import { type Cadence, INTERVAL_SECONDS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import type { ReadTime } from '../../shared/ledger/ledger.ts'
import { type JobPayload, jobPayload, type SlotBatch } from '../../shared/queue/queues.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import type { Entity } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { HttpClients } from '../http/client.ts'
import type { JobState } from './job-state.ts'

/** A time range with the requested step. */
export interface Range extends TimeRange {
  readonly interval: Interval
}

export type { Entity }

export interface ProviderContext {
  readonly config: Config
  readonly http: HttpClients
  /** The wall clock in Unix milliseconds, for providers that count back from now; default `Date.now`. */
  readonly now?: () => number
  readonly log: Logger
  readonly db: Database
}

/** Facts about a provider that need no connection. */
export interface ProviderFacts {
  readonly name: string
  /**
   * How the provider bills requests, from its documentation (docs/providers.md). If a plan has a limit, that of the
   * free plan.
   */
  readonly cost: string
  /**
   * Present if the provider's setting stands for one host per chain. A check of the settings then probes all of them.
   */
  readonly hostPerChain?: true
}

/**
 * A data source. `covers` returns whether the source can be queried for an entity: the provider may have no id for it,
 * or the settings may assign it to another provider. `connect` opens the source.
 * Calls of the source throw a DataError with a `provider_...` code if all requested entities fail (`Run.refuse` rejects
 * a single entity). A missing setting is `provider_unconfigured` and is named in the message. After an error the next
 * provider is queried.
 */
export interface Provider<Source, E extends Entity> extends ProviderFacts {
  covers(entity: E, config: Config): boolean
  connect(context: ProviderContext): Source
}

/** For a slot, all entities of the slot, including those not requested now. For a range, its requested entities. */
export interface Peers<E extends Entity> {
  /** The entities that the provider covers. */
  readonly all: readonly E[]
  /** The covered entities in the run's own batch. */
  readonly own: readonly E[]
}

/**
 * Input of a run. `range` is set for history; otherwise the run collects the state as of `slot`. A run has no clock and
 * no Redis, and inserts nothing.
 */
export interface Run<Source, E extends Entity> {
  readonly provider: Source
  readonly providerName: string
  readonly entities: readonly E[]
  readonly slot: number
  /** The batch of the slot, if the slot is split. A plan's calls per slot are split among the batches. */
  readonly batch?: SlotBatch | undefined
  /**
   * With the peers, a batch can compute its share of the rotation that a single job would use if a plan cannot cover
   * all entities.
   */
  readonly peers: Peers<E>
  /** The requested entities for which an earlier provider had no answer. */
  readonly passedOn: readonly E[]
  readonly range: Range | undefined
  readonly state: JobState
  /**
   * Reports that these entities were completely read during `time`, by this run and the runs whose cursors it continues,
   * with or without rows. Some datasets have rows only for events, such as trades. Their computed data is then up to date
   * for exactly these entities.
   */
  noteRead(entities: readonly E[], time: ReadTime): void
  /**
   * Reports that an entity has no answer, and the reason. Rows of the other entities are stored. The next provider is
   * queried for the entity; if no provider answers, it is retried later. An entity that is neither refused nor put off
   * counts as answered: without rows, a range has no data for it, and a slot is missing its value.
   */
  refuse(entity: E, reason: DataError): void
  /**
   * Reports unreadable elements of an entity's response, such as a null in a list. The readable elements answer the
   * entity. The unreadable ones are counted, and the coverage of the slot has the reason.
   */
  omit(entity: E, elements: Omitted): void
  /**
   * Reports that these entities are not due in this slot, for example because a limit allows only some entities per
   * slot.
   */
  putOff(entities: readonly E[]): void
  /**
   * Reports that the provider has [`from`, `to`) only at this step, in seconds, which is coarser than the requested
   * one. Without a report, rows have the step of the range, or of the cadence.
   */
  noteStep(range: TimeRange, seconds: number): void
  /**
   * Reports that more data can be read immediately. Rows and state are stored first. Then the run is called again with
   * the same input while the job has time. A long reading is thus split into several runs, and an interrupted reading
   * continues after its last complete run.
   */
  noteMore(): void
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Rows that match the dataset's schema, the number that did not, and the keys of their entities with the reason. */
export interface CheckedRows {
  readonly rows: readonly object[]
  readonly rejected: number
  readonly refused: ReadonlyMap<number, DataError>
  /** Why a part of the response is unusable, if its entity is unknown. Any entity without a row may be affected. */
  readonly unreadable?: string | undefined
  /** Number of rejected rows per entity, with the reason of the last one. */
  readonly omitted?: ReadonlyMap<number, Omitted>
}

/** Elements of an entity's response that are not stored, with the reason of one of them. */
export interface Omitted {
  readonly count: number
  readonly reason: string
}

/** Receives the rows that a check rejects. */
export interface CheckLog {
  readonly log: Logger
  readonly onRejected?: (reason: string, rows: number) => void
}

/** Checks the rows of one provider after the other against the stored values. */
export type PlausibilityCheck = (provider: string, checked: CheckedRows, checkLog: CheckLog) => CheckedRows

/** A provider as the confirmation of a slot sees it. */
export interface ConfirmationSource {
  readonly provider: string
  /** Whether the provider is only requested to confirm the values of others. */
  readonly isWitness: boolean
  covers(entity: Entity): boolean
}

export interface ConfirmationInput {
  readonly entities: readonly Entity[]
  readonly slot: number
  /** In the order in which they are requested. */
  readonly sources: readonly ConfirmationSource[]
  /** Rows with an earlier time (Unix milliseconds) do not answer the slot. */
  readonly answersFrom: number
  readonly log: Logger
}

/** Decides which rows of a slot are stored. Values in doubt wait for the answers of further providers. */
export interface Confirmation {
  /** Whether a provider must be requested for the entity. Providers are passed in their order. */
  isRequested(provider: string, entity: Entity): boolean
  /** Takes the rows of a provider and returns those that are decided already. */
  take(provider: string, checked: CheckedRows): CheckedRows
  /** Decides the remaining values after the last provider. */
  finish(): Confirmed
  /** Removes stored values that were found wrong; call before the insert. */
  takeOut(): Promise<readonly TakenOut[]>
  /** Stores the state after the slot; call after the insert. */
  store(): Promise<void>
}

/** Decides about the values of a range again, slot after slot, for a replay of stored answers. */
export interface ConfirmationReplay {
  /** Opens the confirmation of a slot in a run that started at `collectedAt` (Unix milliseconds). */
  open(input: ConfirmationInput, collectedAt: number): Promise<Confirmation>
  /** Notes the rows that a run has decoded; later slots read them. */
  note(results: readonly { readonly provider: string; readonly rows: readonly object[] }[], collectedAt: number): void
  /** Whether a later slot of the replay has removed a row of a run. */
  isTakenOut(row: object, collectedAt: number): boolean
  /** Returns whether a slot after the range has removed a row. */
  readTakenOutLater(): Promise<(row: object) => boolean>
  /** Removes stored values. `at` is in Unix milliseconds. */
  remove(values: readonly Omit<TakenOut, 'provider'>[]): Promise<void>
  /** Stores the state after each slot instead of the stored one. */
  store(): Promise<void>
}

export interface Confirmed {
  /** Rows that were not returned by `take`. */
  readonly rows: readonly { readonly provider: string; readonly row: object }[]
  /** The providers whose rows in `rows` answer the slot, by entity key. */
  readonly answered: ReadonlyMap<number, string>
  /** The reasons of the entities without a value, by key. */
  readonly withheld: ReadonlyMap<number, string>
  /** The number of entities for which the values of a provider are not used. */
  readonly excluded: ReadonlyMap<string, number>
  /** The providers whose values of some entities are not stored. */
  readonly failures: readonly { readonly provider: string; readonly reason: DataError }[]
}

/** A stored value that was removed. `at` is in Unix milliseconds. */
export interface TakenOut {
  readonly entity: number
  readonly provider: string
  readonly at: number
}

/**
 * Symbol member of a candidate row that lists the omitted values with their reasons. The omitted values are counted,
 * and the member is not stored.
 */
export const OMITTED = Symbol('left out')

/** An unchecked row of a provider. Every member is present; the row check validates them. */
export type Candidate<Row> = { readonly [K in keyof Row]: unknown } & { readonly [OMITTED]?: readonly string[] }

export interface JobDefinition<Row extends object, Source, E extends Entity> {
  readonly name: string
  readonly cadence: Cadence
  readonly dataset: Dataset<Row>
  /** In order: the first provider with an answer for an entity wins. */
  readonly providers: readonly Provider<Source, E>[]
  /** Returns the entities of a tick: those of the dataset, with the facts that the providers need. */
  entities(registry: Registry): readonly E[]
  /** Present if providers have history: the largest number of entities and points of one job. */
  readonly history?: {
    readonly intervals: readonly Interval[]
    readonly chunkEntities: number
    readonly chunkPoints: number
    /** The first slot ever also collects this many days before it, because the API serves changes relative to them. */
    readonly firstRunDays?: number
  }
  /**
   * The largest number of entities in one slot job. A larger slot is split into batches that are collected in parallel.
   * Undefined: a slot is one job. One job per slot is required if a run shares a call budget or a cursor among its
   * entities (but see `peers` and `batchKey`).
   */
  readonly slotEntities?: number
  /**
   * Number that assigns an entity to a batch; default: the entity's key. Entities with the same number are always in
   * the same batch, so they may share a cursor.
   */
  batchKey?(entity: E, config: Config): number
  /**
   * Opens a check of slot rows against the stored values of these entities (keys). A row that is implausible, although
   * each of its values is valid, is removed and its entity refused.
   */
  openPlausibilityCheck?(db: Database, entities: readonly number[]): Promise<PlausibilityCheck>
  /** Opens the confirmation of the values of a slot. */
  openConfirmation?(db: Database, input: ConfirmationInput): Promise<Confirmation>
  /** Opens the same decisions for the runs of a replay, which started at these times (Unix milliseconds). */
  openConfirmationReplay?(db: Database, range: TimeRange, runs: readonly number[]): ConfirmationReplay
  /** Opens a check of history rows of these entities (keys) in a range. */
  openHistoryCheck?(db: Database, entities: readonly number[], range: TimeRange): Promise<PlausibilityCheck>
  /** Providers that only confirm values in doubt, after all others. */
  readonly witnesses?: readonly Witness<Row, E>[]
  run(run: Run<Source, E>): Promise<Candidate<Row>[]>
}

/** A provider that is only requested for values in doubt of a slot. */
export interface Witness<Row extends object, E extends Entity> extends ProviderFacts {
  covers(entity: E, config: Config): boolean
  connect(context: ProviderContext): (run: WitnessRun<E>) => Promise<Candidate<Row>[]>
}

export type WitnessRun<E extends Entity> = Pick<Run<unknown, E>, 'entities' | 'signal'> &
  Pick<Run<unknown, Entity>, 'refuse'>

/** A job with erased type parameters, so that one list can hold the jobs of all datasets. */
export interface Job {
  readonly name: string
  readonly cadence: Cadence
  readonly dataset: Dataset
  readonly history: JobDefinition<object, unknown, Entity>['history']
  readonly slotEntities: number
  batchKey(entity: Entity, config: Config): number
  readonly resumes: boolean
  readonly openPlausibilityCheck: JobDefinition<object, unknown, Entity>['openPlausibilityCheck']
  readonly openConfirmation: JobDefinition<object, unknown, Entity>['openConfirmation']
  readonly openConfirmationReplay: JobDefinition<object, unknown, Entity>['openConfirmationReplay']
  readonly openHistoryCheck: JobDefinition<object, unknown, Entity>['openHistoryCheck']
  readonly computedFrom: readonly DatasetFacts[]
  /** In query order. */
  readonly providers: readonly ProviderFacts[]
  entities(registry: Registry): readonly Entity[]
  /** Opens the providers, once per process, and returns one collector per provider, in order; the witnesses are last. */
  connect(context: ProviderContext): readonly Collector[]
}

/** An opened provider of a job. */
export interface Collector {
  readonly provider: string
  readonly isWitness?: true
  covers(entity: Entity): boolean
  collect(run: Omit<Run<unknown, Entity>, 'provider' | 'providerName'>): Promise<object[]>
}

/** Declares how a dataset is collected. */
export function defineJob<Row extends object, Source, E extends Entity>(job: JobDefinition<Row, Source, E>): Job {
  return {
    name: job.name,
    cadence: job.cadence,
    dataset: job.dataset as unknown as Dataset,
    history: job.history,
    slotEntities: job.slotEntities ?? Number.POSITIVE_INFINITY,
    batchKey: (entity, config) => job.batchKey?.(entity as E, config) ?? entity.key,
    resumes: job.dataset.resumes ?? false,
    openPlausibilityCheck: job.openPlausibilityCheck,
    openConfirmation: job.openConfirmation,
    openConfirmationReplay: job.openConfirmationReplay,
    openHistoryCheck: job.openHistoryCheck,
    computedFrom: job.dataset.computedFrom ?? [],
    providers: job.providers,
    entities: (registry) => job.entities(registry),
    connect: (context) => [
      ...job.providers.map((provider): Collector => {
        const source = provider.connect(context)
        return {
          provider: provider.name,
          covers: (entity) => provider.covers(entity as E, context.config),
          collect: (run) =>
            job.run({ ...(run as Omit<Run<Source, E>, 'provider'>), provider: source, providerName: provider.name }),
        }
      }),
      ...(job.witnesses ?? []).map((witness): Collector => {
        const fetchLatest = witness.connect(context)
        return {
          provider: witness.name,
          isWitness: true,
          covers: (entity) => witness.covers(entity as E, context.config),
          collect: (run) => fetchLatest({ ...run, entities: run.entities as readonly E[] }),
        }
      }),
    ],
  }
}

/**
 * Returns whether a slot is over. Such a slot is no longer collected, because present values would be stored for its
 * time. Its values are missing in the coverage, and the scheduler collects them from history if the job has history.
 */
export const isLate = (job: Pick<Job, 'cadence'>, slot: number, now: number): boolean => now >= toSlotEnd(job, slot)

/** Returns the end of a slot (exclusive). Both are Unix milliseconds. */
export const toSlotEnd = ({ cadence }: Pick<Job, 'cadence'>, slot: number): number =>
  slot + INTERVAL_SECONDS[cadence] * 1000

/**
 * Returns whether a slot's rows get the slot's time and hold the state at the time of the response. Such a response
 * belongs to the slot in which it arrived. Events, computed rows and rows with their own times carry the time that they
 * describe.
 */
export const isOfPresent = ({ dataset, computedFrom }: Pick<Job, 'dataset' | 'computedFrom'>): boolean =>
  !dataset.hasOwnTimes && !dataset.resumes && computedFrom.length === 0

/** Enqueues the days to compute again, for the jobs that are computed from a dataset. */
export interface Recomputation {
  /** Called after rows of a dataset are stored, before the job that stored them completes. */
  enqueue(dataset: DatasetFacts, rows: readonly object[]): Promise<void>
  close(): Promise<void>
}

/** @throws DataError `payload` with the job name and the validation error. */
export function parsePayload(job: Job, data: unknown): JobPayload {
  const payload = jobPayload.safeParse(data)
  if (payload.success) return payload.data
  throw new DataError('payload', `${job.name}: ${payload.error.message}`)
}

/** Sources that resolve a payload to entities. */
interface EntitySources {
  readonly registry: Registry
  readonly config: Config
}

/** A slot that is not split into batches. */
const UNSPLIT: SlotBatch = { index: 0, of: 1 }

/**
 * Returns the entities of a payload: the named ids, or else all entities of the job or of its batch. Entities that have
 * ended before the payload starts are dropped, so the result may be empty. Ids that the registry of this worker does
 * not contain are ignored.
 * @throws DataError `payload` if ids are named and the job has none of them.
 */
export function toEntities(job: Job, { registry, config }: EntitySources, payload: JobPayload): readonly Entity[] {
  const at = payload.kind === 'slot' ? payload.slot : payload.from
  const ids = new Set(payload.entities)
  const { index, of } = (payload.kind === 'slot' ? payload.piece : undefined) ?? UNSPLIT
  const named = job
    .entities(registry)
    .filter((entity) => of === 1 || job.batchKey(entity, config) % of === index)
    .filter(({ id }) => payload.entities === undefined || ids.has(id))
  if (named.length > 0 || payload.entities === undefined) return named.filter((entity) => isThereAt(entity, at))
  throw new DataError('payload', `${job.name}: no live entity has any of the ids ${payload.entities.join(', ')}`)
}

/**
 * Returns all entities of the payload's slot and of its batch, also on a retry that names only the remaining entities.
 * @throws DataError `payload`, see `toEntities`.
 */
export function toPeers(job: Job, sources: EntitySources, payload: JobPayload): Peers<Entity> {
  const own = toEntities(job, sources, payload.kind === 'slot' ? { ...payload, entities: undefined } : payload)
  if (payload.kind === 'range' || payload.piece === undefined) return { all: own, own }
  return { all: toEntities(job, sources, { kind: 'slot', slot: payload.slot }), own }
}
