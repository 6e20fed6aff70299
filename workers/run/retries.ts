import { UnrecoverableError } from 'bullmq'
import { DataError, toReason } from '../../shared/errors.ts'
import { type Cadence, HOUR_MS, INTERVAL_SECONDS } from '../../shared/intervals.ts'
import { addNotes, type Queued, readNotes } from '../../shared/queue/job-notes.ts'
import { type JobPayload, jobPayload } from '../../shared/queue/queues.ts'
import { toSlotEnd } from '../job/late-slots.ts'
import { PendingError } from './pending.ts'

const MINUTE_MS = 60_000

const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 30 * MINUTE_MS

/** A job that has failed for so long needs an operator, who has the rest of its day to act. */
const SLOT_MS = 20 * HOUR_MS
/** What stays failing for longer leaves its place; what is missing then is planned anew from what is stored. */
const RANGE_MS = 30 * MINUTE_MS

/** A failure after which the job is tried again. */
export class TryAgain extends Error {
  readonly pauseMs: number

  constructor(message: string, pauseMs: number) {
    super(message)
    this.name = 'TryAgain'
    this.pauseMs = pauseMs
  }
}

/**
 * How long to wait before the next try, in milliseconds: from one second on, doubled with each failure, up to a tenth of
 * the cadence and half an hour, less a random part of up to half, so that jobs that failed together do not come back
 * together; and never less than the provider asked for.
 * @param failures how often the job has failed, 1 the first time.
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
 * Until when a job is tried again, in Unix milliseconds: a slot for 20 hours from its first failure on, but never after its
 * end; a range for half an hour from its first failure on.
 */
export function toLastTry(payload: JobPayload, cadence: Cadence, failingSince: number): number {
  if (payload.kind === 'range') return failingSince + RANGE_MS
  return Math.min(toSlotEnd({ cadence }, payload.slot), failingSince + SLOT_MS)
}

/** Failures that pass by themselves at a known time: a used-up plan or budget, and a value that cannot be used. */
const PASSES_BY_ITSELF: ReadonlySet<string> = new Set(['provider_exhausted', 'provider_malformed'])

/**
 * Whether a range that is not tried again comes back by itself: nobody has to mend anything. Its notes say from when on the
 * missing buckets are planned anew. A range that is collected again has no missing buckets, so nothing would plan it.
 */
export function isPostponed(queued: Queued, error: unknown): error is PendingError {
  const payload = jobPayload.parse(queued.data)
  if (payload.kind !== 'range' || payload.again) return false
  return error instanceof PendingError && PASSES_BY_ITSELF.has(error.code) && error.retryAfterMs !== undefined
}

/**
 * What becomes of a job after a failure that may pass: another try, or an end with the reason where the next try would
 * come too late. `now` is in Unix milliseconds.
 */
export async function toNextTry(
  cadence: Cadence,
  queued: Queued,
  error: unknown,
  now: number,
): Promise<TryAgain | UnrecoverableError> {
  const reason = toReason(error)
  const payload = jobPayload.parse(queued.data)
  // A job that an operator retries begins anew, and so does one that came further: a long reading takes many tries.
  const isAnew = queued.attemptsMade === 0 || (error instanceof PendingError && error.cameFurther)
  const failingSince = (isAnew ? undefined : readNotes(queued).failingSince) ?? now
  if (isAnew) await addNotes(queued, { failingSince })
  const retryAfterMs = error instanceof DataError ? error.retryAfterMs : undefined
  const pauseMs = toPauseMs(queued.attemptsMade + 1, { cadence, retryAfterMs, random: Math.random() })
  const lastTry = toLastTry(payload, cadence, failingSince)
  if (now + pauseMs < lastTry) return new TryAgain(reason, pauseMs)
  const iso = (ms: number) => new Date(ms).toISOString()
  const next =
    retryAfterMs === undefined
      ? 'the next try would come later'
      : `the provider asks to wait until ${iso(now + retryAfterMs)}`
  return new UnrecoverableError(`${reason} (not tried again: its time ends at ${iso(lastTry)}, and ${next})`)
}
