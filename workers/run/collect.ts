import { DataError, findShortestWait, isTransient, toReason } from '../../shared/errors.ts'
import { groupBy } from '../../shared/group-by.ts'
import { DAY_MS, toMs } from '../../shared/intervals.ts'
import type { Answer, ProviderRows, ReadTime, Step } from '../../shared/ledger/ledger.ts'
import type { SlotBatch } from '../../shared/queue/queues.ts'
import type { ProviderFailure } from '../../shared/store/store.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { CheckedRows, Collector, Confirmation, Entity, Omitted, Peers, Range } from '../job/define-job.ts'
import { draftState, type JobState } from '../job/state.ts'

export interface Collected {
  readonly results: readonly ProviderRows[]
  readonly rejected: number
  readonly answers: Answers
  readonly failures: readonly ProviderFailure[]
  /** Whether more data can be read as soon as this is stored. */
  readonly more: boolean
}

/** Entities and time to collect, and the rules that check the results. */
export interface Assignment {
  entities: readonly Entity[]
  /** For a slot: all entities of the slot (`all`) and of this batch (`own`). For a range: its entities. */
  peers: Peers<Entity>
  /** The row member with the entity key. If undefined, every result covers all entities. */
  entityColumn: string | undefined
  slot: number
  batch?: SlotBatch | undefined
  range: Range | undefined
  /** Unix milliseconds. A row older than this does not answer the slot; undefined accepts any row. */
  answersFrom?: number | undefined
  /** The row member that holds the row's time. */
  timeColumn?: string
  /** Whether rows are events. A bucket without events is valid. */
  resumes: boolean
  state: JobState
  signal: AbortSignal
  /** Removes secrets from failure messages before they are stored. */
  redact: Redact
  /** Decides which values are stored; if undefined, each provider's valid rows are. */
  readonly confirmation?: Confirmation | undefined
  /** Counts elements that are not stored, by reason. */
  readonly onRejected?: (reason: string, count: number) => void
  /** Counts the withheld values of the slot, and by provider the entities whose values are not used. */
  readonly onConfirmed?: (withheld: number, excluded: ReadonlyMap<string, number>) => void
  /** Returns the rows that can be stored. Throws a DataError if the provider's response cannot be trusted. */
  check(provider: string, candidates: readonly object[]): CheckedRows
}

/**
 * Queries the providers in order. The first provider gets all entities that it covers. Each later provider gets only
 * the entities without an answer: earlier providers failed or refused them, do not cover them or, in a slot, returned
 * no usable row.
 * In a range, the first provider that does not fail also answers entities without rows, because a token has no history
 * before its launch. Exception: if an earlier provider failed, it may have data that this provider lacks.
 * With a confirmation, values in doubt count as unanswered until it decides them, and witnesses are queried for them.
 * When the job's time is over, no further provider is queried. Results up to then are returned.
 * @throws DataError `storage`, and any error that is not a DataError (a bug in this program).
 */
export async function collect(
  collectors: readonly Collector[],
  assignment: Assignment,
  log: Logger,
): Promise<Collected> {
  const answers = createAnswers(assignment.entities, assignment.range !== undefined)
  const results: ProviderRows[] = []
  const failures: ProviderFailure[] = []
  let [rejected, more] = [0, false]
  const { confirmation } = assignment
  const isRequested = ({ provider, isWitness }: Collector, entity: Entity) =>
    confirmation === undefined ? isWitness !== true : confirmation.isRequested(provider, entity)
  for (const collector of collectors) {
    const { provider } = collector
    const requested = answers.open().filter((entity) => collector.covers(entity) && isRequested(collector, entity))
    if (requested.length === 0) continue
    if (assignment.signal.aborted) {
      answers.failed(requested, provider, toFailure(assignment.signal.reason, provider, assignment.signal))
      continue
    }
    try {
      const passedOn = requested.filter(answers.isPassedOn)
      const one = await queryProvider(collector, { requested, passedOn }, assignment, log)
      one.state.keep()
      // Refused entities may also have rows: the valid rows of a range, or the rows up to the plan's limit.
      if (one.rows.length > 0 || one.read.size > 0 || one.refused.size < requested.length)
        results.push({
          provider,
          rows: one.rows,
          read: [...one.read].map(([entity, time]) => ({ entity, ...time })),
          steps: one.steps,
        })
      rejected += one.rejected
      more ||= one.more
      answers.answered(requested, provider, one)
      const reason = findCommonFailure(requested, one.refused)
      if (reason !== undefined) failures.push({ provider, reason })
    } catch (error) {
      const reason = redactError(toFailure(error, provider, assignment.signal), assignment.redact)
      answers.failed(requested, provider, reason)
      const fields = { provider, entities: requested.length, reason: toReason(reason) }
      if (NOT_SET_UP.has(reason.code)) log.debug(fields, 'provider is not configured')
      else {
        failures.push({ provider, reason })
        log.warn(fields, 'provider failed')
      }
    }
  }
  if (confirmation !== undefined) failures.push(...addConfirmed(confirmation, results, answers, assignment.onConfirmed))
  return { results, rejected, answers, failures, more }
}

/** Adds the rows that were decided after the last provider, and returns the providers that are not believed. */
function addConfirmed(
  confirmation: Confirmation,
  results: ProviderRows[],
  answers: Answers,
  onConfirmed: Assignment['onConfirmed'],
): readonly ProviderFailure[] {
  const { rows, answered, withheld, excluded, failures } = confirmation.finish()
  onConfirmed?.(withheld.size, excluded)
  for (const [provider, own] of groupBy(rows, (one) => one.provider)) {
    const before = results.findIndex((result) => result.provider === provider)
    const result = results[before] ?? { provider, rows: [], read: [], steps: [] }
    const added = { ...result, rows: [...result.rows, ...own.map(({ row }) => row)] }
    if (before < 0) results.push(added)
    else results[before] = added
  }
  for (const [key, provider] of answered) answers.confirmed(key, provider)
  for (const [key, reason] of withheld) answers.withheld(key, reason)
  return failures
}

/**
 * A provider without a key, or without data for any id, does not count as failed. The coverage records the affected
 * entities and the reason.
 */
const NOT_SET_UP: ReadonlySet<string> = new Set(['provider_unconfigured', 'provider_unknown'])

interface RequestedEntities {
  readonly requested: readonly Entity[]
  readonly passedOn: readonly Entity[]
}

async function queryProvider(
  collector: Collector,
  { requested, passedOn }: RequestedEntities,
  assignment: Assignment,
  log: Logger,
) {
  const state = draftState(assignment.state)
  const read = new Map<number, ReadTime>()
  const refused = new Map<number, DataError>()
  const omitted = new Map<number, Omitted>()
  const putOff = new Set<number>()
  const steps: Step[] = []
  const { peers } = assignment
  let more = false
  const candidates = await collector.collect({
    ...assignment,
    entities: requested,
    peers: { all: peers.all.filter(collector.covers), own: peers.own.filter(collector.covers) },
    passedOn,
    state,
    log: log.child({ provider: collector.provider }),
    noteRead: (entities, time) => {
      for (const { key } of entities) read.set(key, time)
    },
    refuse: ({ key }, reason) => void refused.set(key, redactError(reason, assignment.redact)),
    omit: ({ key }, { count, reason }) => {
      const fields = redactError(
        new DataError('provider_malformed', `${collector.provider}: ${reason}`),
        assignment.redact,
      )
      omitted.set(key, { count: count + (omitted.get(key)?.count ?? 0), reason: fields.message })
      assignment.onRejected?.(fields.message, count)
    },
    putOff: (entities) => {
      for (const { key } of entities) putOff.add(key)
    },
    noteStep: ({ from, to }, seconds) => void steps.push({ from, to, seconds }),
    noteMore: () => {
      more = true
    },
  })
  const unreadable = [...omitted.values()].reduce((sum, { count }) => sum + count, 0)
  const valid = assignment.check(collector.provider, candidates)
  const checked = assignment.confirmation?.take(collector.provider, valid) ?? valid
  for (const [key, { count, reason }] of checked.omitted ?? [])
    omitted.set(key, { count: count + (omitted.get(key)?.count ?? 0), reason })
  const answered = { read, refused, putOff }
  const withRows = judge(collector.provider, requested, checked, answered, assignment)
  const rejected = checked.rejected + unreadable
  return { ...checked, ...answered, rejected, withRows, state, omitted, steps, more }
}

/**
 * If a value of history is unusable, an immediate retry returns the same value. The next provider is queried instead,
 * and this one again after a day.
 */
const UNUSABLE_RETRY_MS = DAY_MS

interface Answered {
  readonly read: Pick<ReadonlySet<number>, 'has'>
  readonly refused: Map<number, DataError>
  readonly putOff: ReadonlySet<number>
}

/**
 * Adds the entities whose rows are not a valid answer to `refused`. A refusal by the provider takes precedence over a
 * fault found in its rows.
 * @returns the entities whose rows are a valid answer.
 * @throws DataError `rows_rejected` if rows cover all entities together and cannot be used.
 */
function judge(
  provider: string,
  requested: readonly Entity[],
  checked: CheckedRows,
  { read, refused, putOff }: Answered,
  { entityColumn, timeColumn = '', answersFrom = Number.NEGATIVE_INFINITY, range, resumes }: Assignment,
): ReadonlySet<number> {
  const { unreadable } = checked
  if (entityColumn === undefined) {
    if (unreadable !== undefined) throw new DataError('rows_rejected', `${provider}: ${unreadable}`)
    return new Set(requested.map(({ key }) => key))
  }
  const withRows = new Set<number>()
  const outdated = new Map<number, string>()
  for (const row of checked.rows) {
    const key = Number(Reflect.get(row, entityColumn))
    const time = answersFrom === Number.NEGATIVE_INFINITY ? '' : String(Reflect.get(row, timeColumn))
    if (time !== '' && toMs(time) < answersFrom) outdated.set(key, time)
    else withRows.add(key)
  }
  const refuse = (key: number, reason: DataError) => {
    if (!refused.has(key)) refused.set(key, reason)
  }
  for (const [key, reason] of checked.refused) {
    // In a range, each row is the only value of its bucket, so a rejected row leaves a missing bucket. Events such as
    // trades have no bucket value and are only left out.
    const isBucketLost = range !== undefined && !resumes && reason.code !== 'provider_unknown'
    if (isBucketLost) refuse(key, new DataError(reason.code, reason.message, { retryAfterMs: UNUSABLE_RETRY_MS }))
    else if (!withRows.has(key)) refuse(key, reason)
  }
  for (const [key, time] of outdated)
    if (!withRows.has(key))
      refuse(key, new DataError('provider_unknown', `${provider}: its newest value is of ${time}`))
  if (unreadable === undefined || resumes) return withRows
  const text = `${provider}: nothing of it, and a part of the answer cannot be read: ${unreadable}`
  for (const { key } of requested)
    if (!withRows.has(key) && !read.has(key) && !putOff.has(key)) refuse(key, new DataError('provider_unknown', text))
  return withRows
}

/** If a provider refused all entities and at least one refusal is transient, the provider counts as failed. */
function findCommonFailure(
  requested: readonly Entity[],
  refused: ReadonlyMap<number, DataError>,
): DataError | undefined {
  if (refused.size < requested.length) return undefined
  return [...refused.values()].find(isTransient)
}

/**
 * Rethrows errors that are not a DataError, because they are bugs in this program. Also rethrows `storage` errors: plan
 * usage is counted in our stores before a request, so no provider has failed, and the next provider would not help.
 */
function toFailure(error: unknown, provider: string, signal: AbortSignal): DataError {
  if (error instanceof DataError && error.code === 'storage') throw error
  if (error instanceof DataError) return error
  if (!signal.aborted) throw error
  return toLate(provider, error)
}

const toLate = (provider: string, cause?: unknown) =>
  new DataError('provider_unavailable', `${provider}: not done within the time of the job`, { cause })

/** One provider's result for the requested entities, by entity key. */
interface Said {
  readonly withRows: ReadonlySet<number>
  readonly read: Pick<ReadonlySet<number>, 'has'>
  readonly refused: ReadonlyMap<number, DataError>
  readonly putOff: ReadonlySet<number>
  readonly omitted?: ReadonlyMap<number, Omitted>
}

interface Refusal {
  readonly provider: string
  readonly error: DataError
}

/** Collects the providers' results of a run, per entity. */
export interface Answers {
  /** Returns the entities without an answer. */
  open(): readonly Entity[]
  /** Returns whether an earlier provider was tried for the entity and had no answer. */
  isPassedOn(entity: Entity): boolean
  answered(requested: readonly Entity[], provider: string, said: Said): void
  failed(requested: readonly Entity[], provider: string, error: DataError): void
  /** The provider's row is stored after other providers were requested. */
  confirmed(key: number, provider: string): void
  /** No value of the entity is stored, for this reason. The entity is not requested again unless a provider failed. */
  withheld(key: number, reason: string): void
  /** Returns one answer per entity. */
  all(): readonly Answer[]
}

export function createAnswers(entities: readonly Entity[], isRange: boolean): Answers {
  const settled = new Map<number, Pick<Answer, 'state' | 'provider' | 'omitted'>>()
  const refusals = new Map<number, Refusal[]>(entities.map(({ key }) => [key, []]))
  const withheld = new Map<number, string>()
  const refuse = (key: number, provider: string, error: DataError) => refusals.get(key)?.push({ provider, error })
  const mayPass = (key: number) => refusals.get(key)?.some(({ error }) => isTransient(error)) ?? false
  return {
    open: () => entities.filter(({ key }) => !settled.has(key)),
    isPassedOn: ({ key }) => (refusals.get(key)?.length ?? 0) > 0,
    answered(requested, provider, { withRows, read, refused, putOff, omitted }) {
      const toRows = (key: number) => ({ state: 'rows', provider, omitted: toOmittedText(omitted?.get(key)) }) as const
      for (const { key } of requested) {
        const refusal = refused.get(key)
        if (refusal !== undefined) refuse(key, provider, refusal)
        else if (read.has(key)) settled.set(key, toRows(key))
        // Rows of a partly read entity are stored, and the entity gets another turn. If an earlier provider may still
        // answer, the entity stays open and is retried before its next turn here.
        else if (putOff.has(key)) {
          if (!mayPass(key)) settled.set(key, { ...toRows(key), state: 'put-off' })
        } else if (withRows.has(key)) settled.set(key, toRows(key))
        else if (isRange && !mayPass(key)) settled.set(key, { ...toRows(key), state: 'nothing' })
        else refuse(key, provider, new DataError('provider_unknown', `${provider}: nothing in its answer`))
      }
    },
    failed(requested, provider, error) {
      for (const { key } of requested) refuse(key, provider, error)
    },
    confirmed: (key, provider) => void settled.set(key, { state: 'rows', provider, omitted: '' }),
    withheld: (key, reason) => void withheld.set(key, reason),
    all: () =>
      entities.map((entity) => {
        const refused = refusals.get(entity.key) ?? []
        const found = settled.get(entity.key)
        const failure = findShortestWait(refused.map(({ error }) => error).filter(isTransient))
        const unconfirmed = withheld.get(entity.key)
        const reason = unconfirmed ?? toReasons(refused)
        if (found !== undefined) return { entity, ...found, reason, failure }
        const provider = refused[0]?.provider ?? ''
        const state = failure === undefined && unconfirmed === undefined ? 'unserved' : 'failed'
        return { entity, state, provider, reason: reason === '' ? NO_ID : reason, failure, omitted: '' }
      }),
  }
}

const NO_ID = 'no provider has an id for it'

const toOmittedText = (omitted: Omitted | undefined) =>
  omitted === undefined ? '' : `${omitted.count} left out, ${omitted.reason}`

/** Returns the first and the last reason, each prefixed with its provider. */
function toReasons(refusals: readonly Refusal[]): string {
  const texts = refusals.map(({ provider, error }) => {
    const text = toReason(error)
    return text.startsWith(provider) ? text : `${provider}: ${text}`
  })
  const [first, last] = [texts[0], texts.at(-1)]
  return [...new Set([first, last])].filter((text) => text !== undefined).join('; ')
}

export type Redact = (text: string) => string

/**
 * Returns the same failure with secrets redacted, because providers may repeat them in a response. The cause is
 * dropped: it may contain the whole response.
 */
export function redactError<E>(error: E, redact: Redact): E | DataError {
  if (!(error instanceof DataError) || redact(error.message) === error.message) return error
  return new DataError(error.code, redact(error.message), { retryAfterMs: error.retryAfterMs })
}
