import { DataError, isAboutProvider, toReason } from '../../shared/errors.ts'
import type { Entity, Range, Run } from '../job/define-job.ts'
import type { JobState } from '../job/state.ts'

/** After this many failures in a row, without a success between them, the provider itself is taken to be down. */
const MOST_FAILURES_IN_A_ROW = 3

/** A few entities may all be unknown, as those that other providers left; of this many a provider knows some. */
const MANY = 10

/** What a question resolves to that was not sent, because a run has a limit. */
export const NOT_SENT = Symbol('not sent')

type AskEachOptions<E extends Entity> = {
  readonly concurrency: number
  /** Present where history is asked for. */
  readonly range?: Range | undefined
  /**
   * All entities that the provider would be asked about in this slot if nothing were stored of it; `entities` unless given.
   * Those that are asked may be the rest that nobody knows.
   */
  readonly whole?: readonly Entity[]
} & Pick<Run<unknown, E>, 'log' | 'refuse' | 'state' | 'providerName'>

/**
 * Asks a provider about entities one by one, `concurrency` at a time. An entity whose question fails is refused, and the
 * others are still asked. After a failure that is about the provider itself, or several failures in a row, those that
 * are left are refused for the same reason. Entities whose last question failed are asked last, the longest unasked
 * first: the same failing entities never end the run of the others. `undefined` is an empty answer about an entity. A
 * provider that has nothing but empty answers about the whole of a slot, or knows none of many entities, is taken to be
 * in trouble.
 * @throws whatever is no DataError.
 */
export async function askEach<E extends Entity, Answer>(
  entities: readonly E[],
  ask: (entity: E) => Promise<Answer | typeof NOT_SENT | undefined>,
  { concurrency, log, refuse, range, whole = entities, state, providerName }: AskEachOptions<E>,
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

  async function askOne(entity: E): Promise<void> {
    try {
      const answer = await ask(entity)
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
  async function askOn(): Promise<void> {
    for (let entity = turns[next]; entity !== undefined; entity = turns[next]) {
      next += 1
      if (end === undefined) await askOne(entity)
      else refuse(entity, toNotAsked(end))
    }
  }
  await Promise.all(Array.from({ length: concurrency }, askOn))
  await failures.save()
  const names = unanswered.map(({ name }) => name)
  if (unanswered.length > 0) log.warn({ unanswered: names }, 'no data: what is stored stays')
  const isSilent = unanswered.length > 1 || unknown.length >= MANY
  const asked = new Set(entities.map(({ key }) => key))
  const isWhole = whole.every(({ key }) => asked.has(key))
  // Of a range there may well be nothing for all the entities of a part.
  if (range === undefined && isWhole && answers.length === 0 && isSilent) {
    const silent = [...unanswered, ...unknown]
    const silence = new DataError('provider_unavailable', `no data for any of ${silent.length}`)
    for (const entity of silent) refuse(entity, silence)
  }
  if (reasons.length > 0) log.warn({ failed: reasons.length, reasons: reasons.slice(0, 20) }, 'some gave no answer')
  return answers
}

/** Why an entity was not asked about: a failure of other requests, which the message says, because it names them. */
export function toNotAsked(error: DataError): DataError {
  const { code, message, retryAfterMs, status } = error
  return new DataError(code, `not asked after another request failed: ${message}`, {
    cause: error,
    retryAfterMs,
    status,
  })
}

/** What is remembered of each entity: its place among the failures of a provider, empty after an answer. */
interface Failures<E extends Entity> {
  /** The entities, those that failed when they were last asked about at the end, in the order of their failures. */
  sort(entities: readonly E[]): readonly E[]
  answered(entity: E): void
  failed(entity: E): void
  /** Stores what has changed at once: it holds whatever becomes of the run's rows. */
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
    sort: (all) => all.toSorted((one, other) => placeOf(one) - placeOf(other)),
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
