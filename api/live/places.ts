import { Problem, toUnavailable } from '../problem/problem.ts'

export interface Places {
  /**
   * Takes a place for a client; whoever takes it gives it back once.
   * @throws Problem `rate_limited` when the client has all of its places, `unavailable` when all are taken.
   */
  take(client: string): () => void
}

/** When a place may be free again, in seconds: streams are long, and whoever is refused should not come back at once. */
const RETRY_AFTER = '60'

/** Places for connections that stay, so many in all and so many for a client. */
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
