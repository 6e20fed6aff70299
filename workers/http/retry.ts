/** A longer wait is left to the queue: a worker that sleeps would hold a job that others could do meanwhile. */
export const LONGEST_WAIT_MS = 60_000

const LONGEST_BACKOFF_MS = 30_000

/**
 * The wait that a `Retry-After` header asks for, in milliseconds from `now`. Undefined where there is no wait to keep:
 * no header, a value that is neither whole seconds nor an HTTP date, a time that has passed, or `0`, since providers
 * that send it refuse the next request again (docs/providers.md, section 2).
 */
export function toRetryAfterMs(header: string | null, now: number): number | undefined {
  const value = header?.trim() ?? ''
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : /^[A-Z][a-z]{2}/.test(value) ? Date.parse(value) - now : 0
  return ms > 0 ? ms : undefined
}

/** Exponential backoff with full jitter; `random` is in [0, 1). */
export function toBackoffMs(baseMs: number, retry: number, random: number): number {
  return random * Math.min(LONGEST_BACKOFF_MS, baseMs * 2 ** retry)
}

/** Resolves after `ms`; rejects with the signal's reason when it is aborted first. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const wake = () => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', wake)
      resolve()
    }, ms)
    signal.addEventListener('abort', wake, { once: true })
  })
}
