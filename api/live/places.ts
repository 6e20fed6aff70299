import { Problem, toUnavailable } from '../problem/problem.ts'

export interface Places {
  /**
   * Takes a place for a client's address; whoever takes it gives it back once.
   * @throws Problem `rate_limited` when the address has all of its places, `unavailable` when all are taken.
   */
  take(address: string): () => void
}

/** When a place may be free again, in seconds: streams are long, and whoever is refused should not come back at once. */
const RETRY_AFTER = '60'

/** Places for connections that stay, so many in all and so many for an address. */
export function createPlaces({ all, perAddress }: { readonly all: number; readonly perAddress: number }): Places {
  const taken = new Map<string, number>()
  let count = 0
  return {
    take: (address) => {
      const own = taken.get(address) ?? 0
      if (own >= perAddress) {
        const detail = `There are ${own} streams of yours already: close one, or follow several datasets with one.`
        throw new Problem('rate_limited', detail, { headers: { 'Retry-After': RETRY_AFTER } })
      }
      if (count >= all) throw toUnavailable('All places of streams are taken.')
      count += 1
      taken.set(address, own + 1)
      return () => {
        count -= 1
        const left = (taken.get(address) ?? 1) - 1
        if (left === 0) taken.delete(address)
        else taken.set(address, left)
      }
    },
  }
}
