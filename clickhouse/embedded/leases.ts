import { ClickHouseException } from './exception.ts'

/** The right to run one statement. `release` is idempotent. */
export type Lease = { readonly slot: number; release(): void }

/** Hands out `slots` leases, first come first served. */
export type Leases = {
  /** Waits for a free slot. Throws code 202 when `maxWaiting` requests wait already, and the signal's reason on abort. */
  acquire(signal: AbortSignal): Promise<Lease>
}

type Waiter = { readonly grant: (slot: number) => void; readonly signal: AbortSignal; readonly onAbort: () => void }

export function createLeases(slots: number, maxWaiting: number): Leases {
  const free = Array.from({ length: slots }, (_, slot) => slot).reverse()
  const waiting = new Set<Waiter>()

  function toLease(slot: number): Lease {
    let held = true
    return {
      slot,
      release() {
        if (!held) return
        held = false
        const next = waiting.values().next().value
        if (next === undefined) {
          free.push(slot)
          return
        }
        waiting.delete(next)
        next.signal.removeEventListener('abort', next.onAbort)
        next.grant(slot)
      },
    }
  }

  return {
    async acquire(signal) {
      signal.throwIfAborted()
      const slot = free.pop()
      if (slot !== undefined) return toLease(slot)
      if (waiting.size >= maxWaiting) {
        throw new ClickHouseException(
          202,
          'TOO_MANY_SIMULTANEOUS_QUERIES',
          `Too many simultaneous queries: ${slots} are running and ${waiting.size} wait.`,
        )
      }
      return new Promise<Lease>((resolve, reject) => {
        const waiter: Waiter = {
          grant: (granted) => resolve(toLease(granted)),
          signal,
          onAbort: () => {
            waiting.delete(waiter)
            reject(signal.reason)
          },
        }
        waiting.add(waiter)
        signal.addEventListener('abort', waiter.onAbort, { once: true })
      })
    },
  }
}
