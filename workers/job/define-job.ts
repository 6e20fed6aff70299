import type { Config } from '../../shared/config/config.ts'
import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import type { DataError } from '../../shared/errors.ts'
import type { Cadence, Interval, TimeRange } from '../../shared/intervals.ts'
import type { SlotPiece } from '../../shared/queue/queues.ts'
import type { Entity } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { HttpClients } from '../http/client.ts'
import type { JobState } from './state.ts'

/** A range of time and the step at which its data is asked for. */
export interface Range extends TimeRange {
  readonly interval: Interval
}

export type { Entity }

export interface ProviderContext {
  readonly config: Config
  readonly http: HttpClients
  /** The wall clock in Unix milliseconds, for providers that count back from now; `Date.now` unless given. */
  readonly now?: () => number
  readonly log: Logger
  readonly db: Database
}

/** What is told of a provider without opening it. */
export interface ProviderFacts {
  readonly name: string
  /** How it bills what is asked of it, by its own documents (docs/providers.md); where a plan has a limit, the free one's. */
  readonly cost: string
  /** Present where its name in the settings stands for a host of each chain: a check of the settings asks all of them. */
  readonly hostPerChain?: true
}

/**
 * A source of data. `covers` says whether it can be asked about an entity at all: the provider may have no id for it,
 * or the settings may leave it to another provider. `connect` opens the source. Its calls throw DataError with a
 * `provider_...` code, which is about all entities that were asked for (`Run.refuse` is for one of them); a missing setting
 * is `provider_unconfigured` and names it. Then the next provider is asked.
 */
export interface Provider<Source, E extends Entity> extends ProviderFacts {
  covers(entity: E, config: Config): boolean
  connect(context: ProviderContext): Source
}

/** The entities of a whole slot, whatever is asked for now; of a range, those that it asks for. */
export interface Peers<E extends Entity> {
  /** Whom the provider covers. */
  readonly all: readonly E[]
  /** Those of them who are in the run's own piece. */
  readonly own: readonly E[]
}

/**
 * What a run gets: a `range` when history is asked for, else the state as of `slot`. A run has no clock and no Redis,
 * and inserts nothing.
 */
export interface Run<Source, E extends Entity> {
  readonly provider: Source
  readonly providerName: string
  readonly entities: readonly E[]
  readonly slot: number
  /** Which part of its slot it is, where the slot is cut: what a plan has for a slot is split among its pieces. */
  readonly piece?: SlotPiece | undefined
  /** By them a piece knows its part of what one job would do with a plan that has not room for all. */
  readonly peers: Peers<E>
  /** Those of the entities whom another provider was asked about, and had no answer. */
  readonly passedOn: readonly E[]
  readonly range: Range | undefined
  readonly state: JobState
  /**
   * Says that everything about these entities up to the slot was read, even if there were no rows. Some datasets have
   * rows only when something happened, such as a trade: what is computed from them is then up to date to the slot for
   * these entities, and for no others.
   */
  noteRead(entities: readonly E[]): void
  /**
   * Says that there is no answer for an entity, and why. The rows of the others are kept; the next provider is asked
   * about it, and what no provider answers is asked again later. An entity that is neither refused nor put off counts as
   * answered: without rows, a range holds nothing of it, while a slot has lost it.
   */
  refuse(entity: E, reason: DataError): void
  /**
   * Reports elements of an entity's answer that cannot be read, such as a null in a list. The entity is answered by the
   * others; the elements are counted, and the coverage of the slot gives the reason.
   */
  leaveOut(entity: E, elements: LeftOut): void
  /** Says that it is not the turn of these entities in this slot, as where a limit leaves room for some only. */
  putOff(entities: readonly E[]): void
  /**
   * Says that the provider keeps what it gave of [`from`, `to`) only at this step, in seconds, which is coarser than the
   * one asked for; without it rows stand for the step of the range, or for a cadence.
   */
  noteStep(range: TimeRange, seconds: number): void
  /**
   * Says that more can be read at once. What came is stored first, with the state; then the run is called again for the
   * same, as long as the job has time. So a long reading is made of pieces, and one that ends early goes on there.
   */
  noteMore(): void
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Rows that fit the dataset's schema, how many did not, and the entities of those, by their keys, with the reason. */
export interface CheckedRows {
  readonly rows: readonly object[]
  readonly rejected: number
  readonly refused: ReadonlyMap<number, DataError>
  /** Why a part of the answer cannot be used whose entity is not known: it may be any that has no row. */
  readonly unreadable?: string | undefined
  /** How many rows of an entity did not fit, and why the last one did not. */
  readonly leftOut?: ReadonlyMap<number, LeftOut>
}

/** Elements of an entity's answer that are not stored, and why one of them is not. */
export interface LeftOut {
  readonly count: number
  readonly reason: string
}

/** Where a check of rows tells what it takes out. */
export interface CheckLog {
  readonly log: Logger
  readonly onRejected?: (reason: string, rows: number) => void
}

/** Judges the checked rows of one provider after the other. */
export type Doubt = (provider: string, checked: CheckedRows, told: CheckLog) => CheckedRows

/** The member of a candidate row that lists what was left out of it, and why. It is counted, and is not stored. */
export const LEFT_OUT = Symbol('left out')

/** A row as a provider gave it: every member is there, and none is checked yet. The row check does that. */
export type Candidate<Row> = { readonly [K in keyof Row]: unknown } & { readonly [LEFT_OUT]?: readonly string[] }

export interface JobDefinition<Row extends object, Source, E extends Entity> {
  readonly name: string
  readonly cadence: Cadence
  readonly dataset: Dataset<Row>
  /** In order: the first that answers for an entity wins. */
  readonly providers: readonly Provider<Source, E>[]
  /** Whom a tick collects for: those of the dataset, with what the providers need to know of each. */
  entities(registry: Registry): readonly E[]
  /** Present where providers have history: the largest number of entities and points that one job asks for. */
  readonly history?: {
    readonly intervals: readonly Interval[]
    readonly chunkEntities: number
    readonly chunkPoints: number
    /** The first run ever also collects this many days before it, because the API serves changes against them. */
    readonly firstRunDays?: number
  }
  /**
   * The largest number of entities that one job of a slot asks for: a slot of more is cut, and its pieces are collected at
   * once. Without it a slot is one job, as it must be where a run shares a budget of calls or a cursor among its entities
   * (but see `peers` and `pieceKey`).
   */
  readonly slotEntities?: number
  /**
   * What decides in which piece an entity is; its own key unless given. Entities with the same number are never cut apart,
   * so that they may have a cursor in common.
   */
  pieceKey?(entity: E, config: Config): number
  /**
   * Opens the check of a slot's rows against what is stored of these entities, by their keys: a row that cannot be true
   * although each of its values can is taken out, and its entity refused.
   */
  doubt?(db: Database, entities: readonly number[]): Promise<Doubt>
  run(run: Run<Source, E>): Promise<Candidate<Row>[]>
}

/** A declared job whose own types are hidden, so that one list can hold the jobs of all datasets. */
export interface Job {
  readonly name: string
  readonly cadence: Cadence
  readonly dataset: Dataset
  readonly history: JobDefinition<object, unknown, Entity>['history']
  readonly slotEntities: number
  pieceKey(entity: Entity, config: Config): number
  readonly resumes: boolean
  readonly doubt: JobDefinition<object, unknown, Entity>['doubt']
  readonly computedFrom: readonly DatasetFacts[]
  /** In the order in which they are asked. */
  readonly providers: readonly ProviderFacts[]
  entities(registry: Registry): readonly Entity[]
  /** Opens the providers once per process and returns the collecting function per provider, in order. */
  connect(context: ProviderContext): readonly Collector[]
}

/** One opened provider of a job. */
export interface Collector {
  readonly provider: string
  covers(entity: Entity): boolean
  collect(run: Omit<Run<unknown, Entity>, 'provider' | 'providerName'>): Promise<object[]>
}

/** Declares a job: everything about one dataset's collection that is not plumbing. */
export function defineJob<Row extends object, Source, E extends Entity>(job: JobDefinition<Row, Source, E>): Job {
  if ((job.history !== undefined) !== (job.dataset.hasHistory ?? false))
    throw new Error(`${job.name}: hasHistory of its dataset must say whether the job has history`)
  return {
    name: job.name,
    cadence: job.cadence,
    dataset: job.dataset as unknown as Dataset,
    history: job.history,
    slotEntities: job.slotEntities ?? Number.POSITIVE_INFINITY,
    pieceKey: (entity, config) => job.pieceKey?.(entity as E, config) ?? entity.key,
    resumes: job.dataset.resumes ?? false,
    doubt: job.doubt,
    computedFrom: job.dataset.computedFrom ?? [],
    providers: job.providers,
    entities: (registry) => job.entities(registry),
    connect: (context) =>
      job.providers.map((provider) => {
        const source = provider.connect(context)
        return {
          provider: provider.name,
          covers: (entity) => provider.covers(entity as E, context.config),
          collect: (run) =>
            job.run({ ...(run as Omit<Run<Source, E>, 'provider'>), provider: source, providerName: provider.name }),
        }
      }),
  }
}
