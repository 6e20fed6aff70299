import { HOUR_MS } from '../../shared/intervals.ts'
import type { Failure } from './attempt.ts'

/** One call an hour finds out whether somebody has bought more, or the plan began anew before its time. */
const LOOK_AGAIN_MS = HOUR_MS

/** What a provider said last of a plan that is used up, so that nobody asks it again for the same refusal. */
export interface UsedUp {
  /** Keeps a refusal that says how long the plan is used up; any other failure says nothing of it. */
  note(failure: Pick<Failure, 'code' | 'reason' | 'retryAfterMs'>): void
  /** The refusal while it holds, with the time that is left to the plan's reset in milliseconds. */
  get(): { readonly reason: string; readonly retryAfterMs: number } | undefined
}

/** The memory of one provider, in this process; a key is changed with a new one. A clock that is moved changes nothing. */
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
