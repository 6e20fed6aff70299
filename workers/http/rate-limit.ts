const MINUTE_MS = 60_000

/** Grants permission to send requests in the order of the calls. */
export interface RateLimit {
  /**
   * Resolves when a request may be sent. `cost` is what it counts in rate limits (default 1), `units` what it counts in
   * a daily plan (default `cost`). Rejects with the signal's reason if it is aborted first.
   */
  take(signal: AbortSignal, cost?: number, units?: number): Promise<void>
}

/** Returns the burst size. */
export const toBurst = (perMinute: number, most = Number.POSITIVE_INFINITY): number =>
  Math.max(1, Math.min(most, Math.floor(perMinute / 5)))

interface Waiter {
  readonly cost: number
  grant(): void
}

/**
 * Creates a token bucket that allows at most `perMinute` requests in any minute. The burst is a fifth of them, or
 * `most`; the refill is slower by the same amount. A request that costs more than the burst waits until enough tokens
 * are available, and later requests wait for the remaining cost. The count is local to this process.
 */
export function createRateLimit(perMinute: number, most?: number): RateLimit {
  const burst = toBurst(perMinute, most)
  const refillMs = MINUTE_MS / (perMinute - burst + 1)
  const waiting = new Set<Waiter>()
  let tokens = burst
  let refilledAt = performance.now()
  let timer: NodeJS.Timeout | undefined

  function refill(): void {
    const now = performance.now()
    tokens = Math.min(burst, tokens + (now - refilledAt) / refillMs)
    refilledAt = now
  }

  function serve(): void {
    timer = undefined
    refill()
    for (const waiter of waiting) {
      if (tokens < Math.min(burst, waiter.cost)) break
      tokens -= waiter.cost
      waiting.delete(waiter)
      waiter.grant()
    }
    // Rounded up: a timer that fires slightly early would find no whole token and loop.
    const [next] = waiting
    if (next !== undefined) timer = setTimeout(serve, Math.ceil((Math.min(burst, next.cost) - tokens) * refillMs))
  }

  return {
    take(signal, cost = 1) {
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason)
        const giveUp = () => {
          waiting.delete(waiter)
          reject(signal.reason)
        }
        const waiter: Waiter = {
          cost,
          grant() {
            signal.removeEventListener('abort', giveUp)
            resolve()
          },
        }
        signal.addEventListener('abort', giveUp, { once: true })
        waiting.add(waiter)
        if (timer === undefined) serve()
      })
    },
  }
}
