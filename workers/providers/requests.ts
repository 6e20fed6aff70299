import type { MembersRow } from '../../shared/datasets/members.ts'
import { DataError, isAboutProvider, toReason } from '../../shared/errors.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Candidate, Entity, Range, Run } from '../job/define-job.ts'
import type { JobState } from '../job/state.ts'
import { toIso } from './answer.ts'
import type { MembersSource } from './contracts/members.ts'

/** After this many failures without a success between them, the provider counts as unavailable. */
const MOST_FAILURES_IN_A_ROW = 3

/**
 * A few entities may all be unknown, such as those left by other providers. From this number on, a provider must know
 * some.
 */
const MANY = 10

/** Result of a request that was not sent because of the run's limit. */
export const NOT_SENT = Symbol('not sent')

type RequestEachOptions<E extends Entity> = {
  readonly concurrency: number
  /** Set for history. */
  readonly range?: Range | undefined
  /**
   * All entities that would be requested from the provider in this slot if none were stored; default `entities`.
   * `entities` may be only those still without an answer.
   */
  readonly expected?: readonly Entity[]
} & Pick<Run<unknown, E>, 'log' | 'refuse' | 'state' | 'providerName'>

/**
 * Queries a provider for each entity, `concurrency` at a time. An entity whose request fails is refused, and the others
 * are still requested. After a failure of the provider itself, or several failures in a row, the remaining entities are
 * refused for the same reason. Entities whose last request failed are requested last, oldest failure first, so that
 * permanently failing entities never prevent the others. `undefined` is an empty response for an entity. A provider
 * counts as failed if it returns only empty responses for a whole slot, or if all of many entities are unknown to it.
 * @throws any error that is not a DataError.
 */
export async function requestEach<E extends Entity, Answer>(
  entities: readonly E[],
  fetchOne: (entity: E) => Promise<Answer | typeof NOT_SENT | undefined>,
  { concurrency, log, refuse, range, expected = entities, state, providerName }: RequestEachOptions<E>,
): Promise<Answer[]> {
  const answers: Answer[] = []
  const unanswered: E[] = []
  const unknown: E[] = []
  const reasons: string[] = []
  const failures = await readFailures(state, providerName, entities)
  const turns = failures.sort(entities)
  let inARow = 0
  let next = 0
  let end: DataError | undefined

  async function requestOne(entity: E): Promise<void> {
    try {
      const answer = await fetchOne(entity)
      if (answer === NOT_SENT) return
      inARow = 0
      failures.answered(entity)
      if (answer === undefined) unanswered.push(entity)
      else answers.push(answer)
    } catch (error) {
      if (!(error instanceof DataError)) throw error
      refuse(entity, error)
      reasons.push(`${entity.name}: ${toReason(error)}`)
      if (error.code === 'provider_unknown') {
        unknown.push(entity)
        failures.answered(entity)
      } else {
        inARow += 1
        failures.failed(entity)
      }
      if (isAboutProvider(error) || inARow >= MOST_FAILURES_IN_A_ROW) end ??= error
    }
  }
  async function requestRemaining(): Promise<void> {
    for (let entity = turns[next]; entity !== undefined; entity = turns[next]) {
      next += 1
      if (end === undefined) await requestOne(entity)
      else refuse(entity, toNotRequested(end))
    }
  }
  await Promise.all(Array.from({ length: concurrency }, requestRemaining))
  await failures.save()
  const names = unanswered.map(({ name }) => name)
  if (unanswered.length > 0) log.warn({ unanswered: names }, 'empty responses: the stored data remains unchanged')
  const isSilent = unanswered.length > 1 || unknown.length >= MANY
  const requested = new Set(entities.map(({ key }) => key))
  const isComplete = expected.every(({ key }) => requested.has(key))
  // In a range, it is normal that all entities of a part have no data.
  if (range === undefined && isComplete && answers.length === 0 && isSilent) {
    const silent = [...unanswered, ...unknown]
    const silence = new DataError('provider_unavailable', `no data for any of ${silent.length}`)
    for (const entity of silent) refuse(entity, silence)
  }
  if (reasons.length > 0) log.warn({ failed: reasons.length, reasons: reasons.slice(0, 20) }, 'some requests failed')
  return answers
}

/**
 * The reason for an entity that was not requested. The message states that another request failed, because it names
 * that request.
 */
function toNotRequested(error: DataError): DataError {
  const { code, message, retryAfterMs, status } = error
  return new DataError(code, `not asked after another request failed: ${message}`, {
    cause: error,
    retryAfterMs,
    status,
  })
}

/** Stored per entity: its position among the provider's failures, empty after an answer. */
interface Failures<E extends Entity> {
  /** Sorts the entities. Entities with a failed last request are last, in the order of their failures. */
  sort(entities: readonly E[]): readonly E[]
  answered(entity: E): void
  failed(entity: E): void
  /** Stores the changes immediately: they are valid even if the run's rows are not stored. */
  save(): Promise<void>
}

async function readFailures<E extends Entity>(
  state: JobState,
  provider: string,
  entities: readonly E[],
): Promise<Failures<E>> {
  const toName = ({ id }: Entity) => `${provider}.failed.${id}`
  const stored = await Promise.all(entities.map(async (entity) => Number((await state.get(toName(entity))) ?? 0)))
  const before = new Map(entities.map(({ key }, index) => [key, stored[index] ?? 0]))
  const placeOf = ({ key }: Entity) => before.get(key) ?? 0
  const changed = new Map<E, number>()
  let place = Math.max(0, ...before.values())
  return {
    sort: (all) => all.toSorted((a, b) => placeOf(a) - placeOf(b)),
    answered: (entity) => void (placeOf(entity) > 0 && changed.set(entity, 0)),
    failed: (entity) => {
      place += 1
      changed.set(entity, place)
    },
    save: async () => {
      await Promise.all(
        [...changed].map(([entity, value]) => state.save(toName(entity), value === 0 ? '' : String(value))),
      )
    },
  }
}

/** One call for several entities. */
export interface Batch<E extends Entity> {
  readonly entities: readonly E[]
}

/** Failures that affect only one response; the next call may succeed. */
const ABOUT_ANSWER: ReadonlySet<string> = new Set(['provider_malformed', 'provider_unknown'])

/**
 * Makes the calls in sequence and returns the rows of the successful ones. The entities of a failed call are refused.
 * If the failure affects more than this response, the remaining calls are not made and their entities are refused, too.
 * @throws DataError the first failure, if no call succeeded.
 */
export async function requestBatches<E extends Entity, B extends Batch<E>, Row>(
  batches: readonly B[],
  fetchBatch: (batch: B) => Promise<readonly Row[]>,
  { refuse }: Pick<Run<unknown, E>, 'refuse'>,
): Promise<Row[]> {
  const rows: (readonly Row[])[] = []
  const failed: { batch: B; error: DataError }[] = []
  let end: DataError | undefined
  for (const batch of batches) {
    if (end !== undefined) failed.push({ batch, error: toNotRequested(end) })
    else {
      try {
        rows.push(await fetchBatch(batch))
      } catch (error) {
        if (!(error instanceof DataError)) throw error
        failed.push({ batch, error })
        if (!ABOUT_ANSWER.has(error.code)) end = error
      }
    }
  }
  const [first] = failed
  if (first !== undefined && rows.length === 0) throw first.error
  for (const { batch, error } of failed) for (const entity of batch.entities) refuse(entity, error)
  return rows.flat()
}

/** Queries a provider for the members of each community. A community without a number is logged and has no row. */
export async function requestMembers({
  provider,
  entities,
  slot,
  signal,
  ...run
}: Run<MembersSource, Dao>): Promise<Candidate<MembersRow>[]> {
  const fetchOne = async (dao: Dao): Promise<Candidate<MembersRow>> => {
    const members = await provider.fetchMembers(dao, signal)
    if (typeof members !== 'string') return { dao: dao.key, observed_at: toIso(slot), ...members }
    throw new DataError('provider_unknown', members)
  }
  return requestEach(entities, fetchOne, { ...run, concurrency: provider.concurrency, expected: run.peers.own })
}
