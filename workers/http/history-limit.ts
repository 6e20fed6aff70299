import type { RateLimit } from './rate-limit.ts'

/**
 * The limit of requests that repair history: each is one of the provider's whole limit, and of a share of it besides. In
 * a process only one of them at a time stands in the line of the whole limit. So a request of now waits for at most one
 * place that history has taken before it, however much history there is to repair.
 */
export function createHistoryLimit(share: RateLimit, whole: RateLimit): RateLimit {
  let last: Promise<void> = Promise.resolve()
  const takeBoth = async (signal: AbortSignal, cost?: number, units?: number) => {
    // One that was aborted in line takes nothing.
    signal.throwIfAborted()
    // The share comes first: where it is used up, nothing of the whole may be spent.
    await share.take(signal, cost, units)
    await whole.take(signal, cost, units)
  }
  return {
    take(signal, cost, units) {
      const turn = last.then(() => takeBoth(signal, cost, units))
      // Whoever comes next has its turn however this one ends; its failure is told to the one who asked.
      last = turn.catch(() => undefined)
      return untilAborted(turn, signal)
    },
  }
}

/** The same promise, but rejected with the signal's reason as soon as that is aborted. */
function untilAborted(turn: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(signal.reason)
    if (signal.aborted) giveUp()
    else signal.addEventListener('abort', giveUp, { once: true })
    turn.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp))
  })
}
