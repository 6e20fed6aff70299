import { UnrecoverableError } from 'bullmq'
import { DataError, toReason } from '../../shared/errors.ts'
import { type Cadence, HOUR_MS, INTERVAL_SECONDS } from '../../shared/intervals.ts'
import { addNotes, type Queued, readNotes } from '../../shared/queue/job-notes.ts'
import { type JobPayload, type JobReport, jobPayload } from '../../shared/queue/queues.ts'
import { toSlotEnd } from '../job/define-job.ts'

const MINUTE_MS = 60_000

const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 30 * MINUTE_MS

/** A slot job that has failed for 20 hours needs an operator, who has the rest of the day to act. */
const SLOT_MS = 20 * HOUR_MS
/**
 * A range that fails longer frees its place in the queue. Its missing buckets are planned again from the stored
 * coverage.
 */
const RANGE_MS = 30 * MINUTE_MS

/** A failure after which the job is retried. */
export class RetryLater extends Error {
  readonly pauseMs: number

  constructor(message: string, pauseMs: number) {
    super(message)
    this.name = 'RetryLater'
    this.pauseMs = pauseMs
  }
}

/**
 * Returns the delay before the next attempt in milliseconds: 1 s, doubled with each failure, at most a tenth of the
 * cadence and at most 30 minutes. Random jitter subtracts up to half, so jobs that failed together do not retry
 * together. Never shorter than the provider's `retryAfterMs`.
 * @param failures number of failures so far, 1 after the first.
 */
export function toPauseMs(
  failures: number,
  { cadence, retryAfterMs = 0, random }: { cadence: Cadence; retryAfterMs?: number | undefined; random: number },
): number {
  const most = Math.min(LONGEST_PAUSE_MS, INTERVAL_SECONDS[cadence] * 100)
  const ceiling = Math.min(most, FIRST_PAUSE_MS * 2 ** (failures - 1))
  return Math.max(retryAfterMs, Math.round(ceiling * (0.5 + random / 2)))
}

/**
 * Returns the end of retries in Unix milliseconds. Slot: 20 hours after its first failure, but not after the slot's
 * end. Range: 30 minutes after its first failure.
 */
export function toLastTry(payload: JobPayload, cadence: Cadence, failingSince: number): number {
  if (payload.kind === 'range') return failingSince + RANGE_MS
  return Math.min(toSlotEnd({ cadence }, payload.slot), failingSince + SLOT_MS)
}

/** Failures with a known end that need no operator: an exhausted plan or budget, and an unusable value. */
const PASSES_BY_ITSELF: ReadonlySet<string> = new Set(['provider_exhausted', 'provider_malformed'])

/**
 * Returns whether a failed range is planned again without an operator. The notes of its missing buckets have the time of
 * the next attempt. A range that is collected with `again` has no missing buckets, so it would never be planned.
 */
export function isPostponed(queued: Queued, error: unknown): error is PartialFailureError {
  const payload = jobPayload.parse(queued.data)
  if (payload.kind !== 'range' || payload.again) return false
  return error instanceof PartialFailureError && PASSES_BY_ITSELF.has(error.code) && error.retryAfterMs !== undefined
}

/**
 * Decides what follows a transient failure: a retry, or a final error with the reason if the next attempt would be too
 * late. `now` is in Unix milliseconds.
 */
export async function toNextTry(
  cadence: Cadence,
  queued: Queued,
  error: unknown,
  now: number,
): Promise<RetryLater | UnrecoverableError> {
  const reason = toReason(error)
  const payload = jobPayload.parse(queued.data)
  // The retry period restarts if an operator retries the job or the last attempt made progress: a long reading takes
  // many attempts.
  const isRestarted = queued.attemptsMade === 0 || (error instanceof PartialFailureError && error.hasProgressed)
  const failingSince = (isRestarted ? undefined : readNotes(queued).failingSince) ?? now
  if (isRestarted) await addNotes(queued, { failingSince })
  const retryAfterMs = error instanceof DataError ? error.retryAfterMs : undefined
  const pauseMs = toPauseMs(queued.attemptsMade + 1, { cadence, retryAfterMs, random: Math.random() })
  const lastTry = toLastTry(payload, cadence, failingSince)
  if (now + pauseMs < lastTry) return new RetryLater(reason, pauseMs)
  const iso = (ms: number) => new Date(ms).toISOString()
  const next =
    retryAfterMs === undefined
      ? 'the next try would come later'
      : `the provider asks to wait until ${iso(now + retryAfterMs)}`
  return new UnrecoverableError(`${reason} (not tried again: its time ends at ${iso(lastTry)}, and ${next})`)
}

/**
 * Partial failure: the run stored the available rows (see `report`) and must be retried for `entities` (registry ids),
 * which have no answer yet.
 */
export class PartialFailureError extends DataError {
  readonly entities: readonly string[]
  readonly report: JobReport
  /** Whether the run made progress, so that the next attempt has less to do. */
  readonly hasProgressed: boolean

  constructor(
    cause: DataError,
    { entities, report, hasProgressed }: Pick<PartialFailureError, 'entities' | 'report' | 'hasProgressed'>,
  ) {
    const { retryAfterMs } = cause
    super(cause.code, `${entities.length} without an answer: ${cause.message}`, { cause, retryAfterMs })
    this.name = 'PartialFailureError'
    this.entities = entities
    this.report = report
    this.hasProgressed = hasProgressed
  }
}
