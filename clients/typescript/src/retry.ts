import { ConnectionError, ProblemError } from './failure.ts'

/** What may pass: a limit, a gateway without a service behind it, a service that is busy. All else fails the same way again. */
const isPassing = (status: number) => [429, 502, 503, 504].includes(status)
const FIRST_WAIT_MS = 250
const LONGEST_BACKOFF_MS = 15_000

/** Waits, and is rejected with the signal's reason as soon as that is aborted. */
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
 * For how long to wait before asking again, in milliseconds; undefined where that would bring nothing. What the service says
 * is kept to; else waits grow, each by chance between a half and the whole, so that clients do not come back all at once.
 * `passes` tells of which statuses it would bring something.
 */
export function toWaitMs(error: unknown, attempt: number, passes = isPassing): number | undefined {
  if (!(error instanceof ConnectionError || (error instanceof ProblemError && passes(error.status)))) return undefined
  if (error instanceof ProblemError && error.retryAfter !== undefined) return error.retryAfter * 1000
  return Math.min(LONGEST_BACKOFF_MS, FIRST_WAIT_MS * 2 ** attempt) * (0.5 + Math.random() / 2)
}

export interface Retries {
  /** How often a request is sent again. */
  readonly retries: number
  /** Longer than this is not waited for, in milliseconds: the error tells when to ask again. */
  readonly longestWaitMs: number
}

/** Asks until there is an answer, an error that does not pass, or no try left. */
export async function withRetries<T>(
  ask: () => Promise<T>,
  { retries, longestWaitMs }: Retries,
  signal: AbortSignal | undefined,
): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await ask()
    } catch (error) {
      const ms = toWaitMs(error, attempt)
      if (ms === undefined || attempt >= retries || ms > longestWaitMs) throw error
      await wait(ms, signal)
    }
  }
}
