import type { RateLimit } from './rate-limit.ts'

/**
 * Rate limit of history requests: each takes from the provider's whole limit and from the history share. At most one
 * history request per process waits in the queue of the whole limit. A live request therefore waits for at most one
 * history request, whatever the backlog.
 */
export function createHistoryLimit(share: RateLimit, whole: RateLimit): RateLimit {
  let last: Promise<void> = Promise.resolve()
  const takeBoth = async (signal: AbortSignal, cost?: number, units?: number) => {
    // A request aborted while waiting takes nothing.
    signal.throwIfAborted()
    // The share is taken first: if it is exhausted, nothing is taken from the whole limit.
    await share.take(signal, cost, units)
    await whole.take(signal, cost, units)
  }
  return {
    take(signal, cost, units) {
      const turn = last.then(() => takeBoth(signal, cost, units))
      // The next request gets its turn even if this one fails; the failure is reported to its own caller.
      last = turn.catch(() => undefined)
      return untilAborted(turn, signal)
    },
  }
}

/** Returns the same promise, but rejects with the signal's reason as soon as it is aborted. */
function untilAborted(turn: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(signal.reason)
    if (signal.aborted) giveUp()
    else signal.addEventListener('abort', giveUp, { once: true })
    turn.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp))
  })
}
