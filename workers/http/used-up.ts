import { HOUR_MS } from '../../shared/intervals.ts'
import type { Failure } from './attempt.ts'

/** One call per hour detects a larger plan or an early reset. */
const LOOK_AGAIN_MS = HOUR_MS

/** The last report of an exhausted plan (quotaExhausted), so that the same refusal is not requested again. */
export interface UsedUp {
  /** Stores a refusal that includes the time until the plan's reset; ignores other failures. */
  note(failure: Pick<Failure, 'code' | 'reason' | 'retryAfterMs'>): void
  /** Returns the refusal while it is valid, with the milliseconds until the plan's reset. */
  get(): { readonly reason: string; readonly retryAfterMs: number } | undefined
}

/**
 * State of one provider in this process. A changed key needs a new process, which starts without state. Uses a
 * monotonic clock, so clock changes have no effect.
 */
export function createUsedUp(): UsedUp {
  let told = { reason: '', resetAt: 0, holdsUntil: 0 }
  return {
    note({ code, reason, retryAfterMs }) {
      if (code !== 'provider_exhausted' || retryAfterMs === undefined) return
      const now = performance.now()
      told = { reason, resetAt: now + retryAfterMs, holdsUntil: now + Math.min(retryAfterMs, LOOK_AGAIN_MS) }
    },
    get() {
      const now = performance.now()
      return now < told.holdsUntil ? { reason: told.reason, retryAfterMs: told.resetAt - now } : undefined
    },
  }
}
