/** A longer wait than this is the queue's to keep: a worker that sleeps holds a place others could use. */
export const LONGEST_WAIT_MS = 60_000

const LONGEST_BACKOFF_MS = 30_000

/**
 * The wait that a `Retry-After` header asks for, in milliseconds from `now`. Undefined where there is none to honour:
 * no header, one that is neither whole seconds nor an HTTP date, a time that has passed, and `0`, which is sent by
 * providers that refuse again at once (providers document, section 2).
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
