import { DataError, toReason } from '../../shared/errors.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { Entity } from '../job/define-job.ts'

/** After this many failures in a row, without a success between them, the provider itself is taken to be down. */
const MOST_FAILURES_IN_A_ROW = 3

/**
 * Asks a provider about entities one by one, `concurrency` at a time. A failure for one entity is logged and the others
 * are still asked. A refusal (`provider_rejected`) and several failures in a row end the asking; the answers that came
 * are kept.
 * @throws the first failure, or DataError `provider_unavailable` without one, when there is no answer at all.
 */
export async function askEach<E extends Entity, Answer>(
  entities: readonly E[],
  ask: (entity: E) => Promise<Answer | undefined>,
  options: { concurrency: number; log: Logger },
): Promise<Answer[]> {
  const answers: Answer[] = []
  const unanswered: string[] = []
  const failures: { name: string; error: DataError }[] = []
  let inARow = 0
  let next = 0
  let ended = false

  async function askOne(entity: E): Promise<void> {
    try {
      const answer = await ask(entity)
      inARow = 0
      if (answer === undefined) unanswered.push(entity.name)
      else answers.push(answer)
    } catch (error) {
      ended ||= !(error instanceof DataError)
      if (!(error instanceof DataError)) throw error
      failures.push({ name: entity.name, error })
      inARow += 1
      ended ||= error.code === 'provider_rejected' || inARow >= MOST_FAILURES_IN_A_ROW
    }
  }
  async function askOn(): Promise<void> {
    for (let entity = entities[next]; entity !== undefined && !ended; entity = entities[next]) {
      next += 1
      await askOne(entity)
    }
  }
  await Promise.all(Array.from({ length: options.concurrency }, askOn))
  if (unanswered.length > 0) options.log.warn({ unanswered }, 'no data: what is stored stays')
  if (answers.length === 0 && entities.length > 0) throw failures[0]?.error ?? toSilence(unanswered)
  if (failures.length > 0) {
    const reasons = failures.map(({ name, error }) => `${name}: ${toReason(error)}`)
    options.log.warn({ failed: failures.length, unasked: entities.length - next, reasons }, 'some could not be asked')
  }
  return answers
}

function toSilence(unanswered: readonly string[]): DataError {
  return new DataError('provider_unavailable', `no data for any of ${unanswered.length}`)
}
