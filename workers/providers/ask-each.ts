import { DataError, isAboutProvider, toReason } from '../../shared/errors.ts'
import type { Entity, Range, Run } from '../job/define-job.ts'

/** After this many failures in a row, without a success between them, the provider itself is taken to be down. */
const MOST_FAILURES_IN_A_ROW = 3

/** A few entities may all be unknown, as those that other providers left; of this many a provider knows some. */
const MANY = 10

/** `range` is given where history is asked for. */
type AskEachOptions<E extends Entity> = { readonly concurrency: number; readonly range?: Range | undefined } & Pick<
  Run<unknown, E>,
  'log' | 'refuse'
>

/**
 * Asks a provider about entities one by one, `concurrency` at a time. An entity whose question fails is refused, and the
 * others are still asked. After a failure that is about the provider itself, or several failures in a row, those that
 * are left are refused for the same reason. `undefined` is an empty answer about an entity. A provider that in a slot has
 * nothing but empty answers, or knows none of many entities, is taken to be in trouble.
 * @throws whatever is no DataError.
 */
export async function askEach<E extends Entity, Answer>(
  entities: readonly E[],
  ask: (entity: E) => Promise<Answer | undefined>,
  { concurrency, log, refuse, range }: AskEachOptions<E>,
): Promise<Answer[]> {
  const answers: Answer[] = []
  const unanswered: E[] = []
  const unknown: E[] = []
  const reasons: string[] = []
  let inARow = 0
  let next = 0
  let end: DataError | undefined

  async function askOne(entity: E): Promise<void> {
    try {
      const answer = await ask(entity)
      inARow = 0
      if (answer === undefined) unanswered.push(entity)
      else answers.push(answer)
    } catch (error) {
      if (!(error instanceof DataError)) throw error
      refuse(entity, error)
      reasons.push(`${entity.name}: ${toReason(error)}`)
      if (error.code === 'provider_unknown') unknown.push(entity)
      else inARow += 1
      if (isAboutProvider(error) || inARow >= MOST_FAILURES_IN_A_ROW) end ??= error
    }
  }
  async function askOn(): Promise<void> {
    for (let entity = entities[next]; entity !== undefined; entity = entities[next]) {
      next += 1
      if (end === undefined) await askOne(entity)
      else refuse(entity, toNotAsked(end))
    }
  }
  await Promise.all(Array.from({ length: concurrency }, askOn))
  const names = unanswered.map(({ name }) => name)
  if (unanswered.length > 0) log.warn({ unanswered: names }, 'no data: what is stored stays')
  const isSilent = unanswered.length > 1 || unknown.length >= MANY
  // Of a range there may well be nothing for all the entities of a part.
  if (range === undefined && answers.length === 0 && isSilent) {
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
