import { Problem, toUnavailable } from '../problem/problem.ts'

export interface Places {
  /**
   * Takes a slot for a client. Returns a function that releases it; the caller calls it once.
   * @throws Problem `rate_limited` when the client uses all its slots, `unavailable` when all slots are in use.
   */
  take(client: string): () => void
}

/** `Retry-After` in seconds. Streams are long, so rejected clients should not retry immediately. */
const RETRY_AFTER = '60'

/** Slots for long-lived connections: `all` in total and `perClient` for each client. */
export function createPlaces({ all, perClient }: { readonly all: number; readonly perClient: number }): Places {
  const taken = new Map<string, number>()
  let count = 0
  return {
    take: (client) => {
      const own = taken.get(client) ?? 0
      if (own >= perClient) {
        const detail = `There are ${own} streams of yours already: close one, or follow several datasets with one.`
        throw new Problem('rate_limited', detail, { headers: { 'Retry-After': RETRY_AFTER } })
      }
      if (count >= all) throw toUnavailable('All places of streams are taken.')
      count += 1
      taken.set(client, own + 1)
      return () => {
        count -= 1
        const left = (taken.get(client) ?? 1) - 1
        if (left === 0) taken.delete(client)
        else taken.set(client, left)
      }
    },
  }
}
