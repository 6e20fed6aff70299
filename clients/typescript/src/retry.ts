import { ConnectionError, ProblemError } from './failure.ts'

/**
 * Temporary errors: a rate limit, a gateway without a service, an overloaded service. A retry after any other error
 * would fail again.
 */
const isTransient = (status: number) => [429, 502, 503, 504].includes(status)
const FIRST_WAIT_MS = 250
const LONGEST_BACKOFF_MS = 15_000

/** Waits; rejects with the signal's reason when the signal is aborted. */
export const wait = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const stop = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal?.addEventListener('abort', stop, { once: true })
  })

/**
 * Milliseconds before the next attempt; undefined if a retry would not help. `Retry-After` has priority. Otherwise the
 * wait grows exponentially with jitter between half and the full value, so that clients do not retry simultaneously.
 * `passes` decides which statuses are temporary.
 */
export function toWaitMs(error: unknown, attempt: number, passes = isTransient): number | undefined {
  if (!(error instanceof ConnectionError || (error instanceof ProblemError && passes(error.status)))) return undefined
  if (error instanceof ProblemError && error.retryAfter !== undefined) return error.retryAfter * 1000
  return Math.min(LONGEST_BACKOFF_MS, FIRST_WAIT_MS * 2 ** attempt) * (0.5 + Math.random() / 2)
}

export interface Retries {
  /** Maximum number of retries. */
  readonly retries: number
  /** Maximum wait in milliseconds. If the next attempt would be later, the error is thrown, with the time to retry. */
  readonly longestWaitMs: number
}

/** Retries until there is an answer, a permanent error, or no attempt left. */
export async function withRetries<T>(
  send: () => Promise<T>,
  { retries, longestWaitMs }: Retries,
  signal: AbortSignal | undefined,
): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await send()
    } catch (error) {
      const ms = toWaitMs(error, attempt)
      if (ms === undefined || attempt >= retries || ms > longestWaitMs) throw error
      await wait(ms, signal)
    }
  }
}
