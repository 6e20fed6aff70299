const MINUTE_MS = 60_000

/** Hands out the permission to send requests, first come first served. */
export interface RateLimit {
  /**
   * Resolves when a request may be sent that counts as `cost`, 1 by default, and in a day's plan as `units`, which is the
   * cost by default; rejects with the signal's reason when it is aborted first.
   */
  take(signal: AbortSignal, cost?: number, units?: number): Promise<void>
}

/** How many requests may go at once. */
export const toBurst = (perMinute: number, most = Number.POSITIVE_INFINITY): number =>
  Math.max(1, Math.min(most, Math.floor(perMinute / 5)))

interface Waiter {
  readonly cost: number
  grant(): void
}

/**
 * A token bucket with at most `perMinute` requests in any minute: a fifth of them, or `most`, may go at once, and the refill is
 * slower by the same share. A request that costs more than may go at once waits until that much is there, and those after
 * it wait for the rest. The count is this process's own.
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
    // Rounded up: a timer that fires a fraction early would find no whole token and spin.
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
