import { DataError, isTransient, toReason } from '../../shared/errors.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { Collector, Entity, Range } from '../job/define-job.ts'
import { draftState, type JobState } from '../job/state.ts'
import type { CheckedRows } from './rows.ts'

export interface Collected {
  /** Rows that fit the dataset's schema. */
  rows: object[]
  rejected: number
  /** The keys of the entities that were read up to the slot, rows or not, as providers say. */
  read: number[]
  /** The providers that answered. */
  providers: string[]
  /** How many entities no provider had an answer for. */
  uncovered: number
  /** A failure that leaves some entities to be asked for again, once what came is stored. */
  pending: DataError | undefined
}

/** What is to be collected, and how the answers are judged. */
interface Assignment {
  entities: readonly Entity[]
  /** The row member that holds the entity's key. Without one every answer is about all entities. */
  entityColumn: string | undefined
  slot: number
  range: Range | undefined
  /**
   * Whether a slot is tried again for the entities without an answer, as a range always is, when a provider failed for
   * a while.
   */
  resumes: boolean
  state: JobState
  signal: AbortSignal
  /** Keeps the rows of a provider's answer that can be stored; throws DataError when the answer cannot be trusted. */
  check(provider: string, candidates: readonly object[]): CheckedRows
  /** Called for each provider that was asked and failed. */
  onFailed?(provider: string): void
}

/**
 * Asks the providers in order. The first is asked about all entities that it covers; the next only about what is left:
 * entities whose provider failed, entities that the providers before do not cover and, for a slot, entities without a
 * usable row. In a range an entity without rows counts as answered, because a token has no history before its launch.
 * When the job's time is over no further provider is asked, and what came is kept.
 * @throws DataError when no provider answered: a failure that may pass, where there is one, else the first.
 */
export async function collect(
  collectors: readonly Collector[],
  assignment: Assignment,
  log: Logger,
): Promise<Collected> {
  const collected = { rows: [] as object[], rejected: 0, read: [] as number[], providers: [] as string[] }
  const failures: DataError[] = []
  let left = assignment.entities
  for (const collector of collectors) {
    const asked = left.filter((entity) => collector.covers(entity))
    if (asked.length === 0) continue
    if (assignment.signal.aborted) {
      failures.push(toLate(collector.provider))
      continue
    }
    try {
      const ownLog = log.child({ provider: collector.provider })
      const state = draftState(assignment.state)
      const read = new Set<number>()
      const noteRead = (some: readonly Entity[]) => {
        for (const { key } of some) read.add(key)
      }
      const answer = await collector.collect({ ...assignment, entities: asked, state, noteRead, log: ownLog })
      const { rows, rejected } = assignment.check(collector.provider, answer)
      state.keep()
      for (const row of rows) collected.rows.push(row)
      collected.rejected += rejected
      collected.read.push(...read)
      collected.providers.push(collector.provider)
      const settled = toSettled(asked, rows, assignment)
      left = left.filter((entity) => !settled.has(entity.key))
    } catch (error) {
      const failure = toFailure(error, collector.provider, assignment.signal)
      failures.push(failure)
      assignment.onFailed?.(collector.provider)
      log.warn({ provider: collector.provider, entities: asked.length, reason: toReason(failure) }, 'provider failed')
    }
  }
  const transient = failures.find(isTransient)
  const reason = transient ?? failures[0]
  if (collected.providers.length === 0 && reason !== undefined) throw reason
  const isResumed = assignment.resumes || assignment.range !== undefined
  const pending = isResumed && left.length > 0 ? transient : undefined
  return { ...collected, uncovered: left.length, pending }
}

/** An error that is no DataError is a mistake in this program, and is thrown as it is. */
function toFailure(error: unknown, provider: string, signal: AbortSignal): DataError {
  if (error instanceof DataError) return error
  if (!signal.aborted) throw error
  return toLate(provider, error)
}

const toLate = (provider: string, cause?: unknown) =>
  new DataError('provider_unavailable', `${provider}: not done within the time of the job`, { cause })

/** The keys of the entities that need no other provider. */
function toSettled(asked: readonly Entity[], rows: readonly object[], assignment: Assignment): Set<unknown> {
  const { entityColumn, range } = assignment
  if (range !== undefined || entityColumn === undefined) return new Set(asked.map((entity) => entity.key))
  return new Set(rows.map((row) => Reflect.get(row, entityColumn)))
}
