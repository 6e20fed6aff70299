import type { ClientKey, FairQueue } from '../admission/admission.ts'
import { type Flight, startFlight } from '../answers/flight.ts'

interface QueuedFlight<T> extends Flight<T> {
  /** Another client requests the same work and may have a better position in the queue. */
  alsoFor(client: ClientKey): void
}

/** Running work by key: concurrent requests with the same key share one single flight. */
export interface Flights<T> {
  /**
   * Returns the single flight for a key. If none exists, starts `work` when the queue admits it, or immediately without
   * a `client`.
   * @throws Problem `unavailable` when the request would have to wait too long.
   */
  board(
    key: string,
    work: (abandoned: AbortSignal) => Promise<T>,
    client?: ClientKey,
  ): { flight: Flight<T>; isNew: boolean }
}

/**
 * Starts the work when the queue has a free slot. Does not start it if all waiting clients have disconnected by then.
 */
function startQueued<T>(
  queue: FairQueue,
  client: ClientKey,
  work: (abandoned: AbortSignal) => Promise<T>,
): QueuedFlight<T> {
  let alsoFor: QueuedFlight<T>['alsoFor'] = () => {}
  const flight = startFlight((abandoned) => {
    const ticket = queue.enter(client, abandoned)
    alsoFor = ticket.alsoFor
    return workInTurn(ticket.turn, abandoned, work)
  })
  return { ...flight, alsoFor: (other) => alsoFor(other) }
}

async function workInTurn<T>(
  turn: ReturnType<FairQueue['enter']>['turn'],
  abandoned: AbortSignal,
  work: (abandoned: AbortSignal) => Promise<T>,
): Promise<T> {
  const leave = await turn
  try {
    abandoned.throwIfAborted()
    return await work(abandoned)
  } finally {
    leave()
  }
}

/** Creates single flights that wait in a queue. */
export function createFlights<T>(queue: FairQueue): Flights<T> {
  const underway = new Map<string, QueuedFlight<T>>()
  return {
    board: (key, work, client) => {
      const known = underway.get(key)
      if (known !== undefined) {
        if (client !== undefined) known.alsoFor(client)
        return { flight: known, isNew: false }
      }
      const landing = async (abandoned: AbortSignal) => {
        const result = await work(abandoned)
        land()
        return result
      }
      const flight: QueuedFlight<T> =
        client === undefined ? { ...startFlight(landing), alsoFor: () => {} } : startQueued(queue, client, landing)
      const land = () => {
        if (underway.get(key) === flight) underway.delete(key)
      }
      underway.set(key, flight)
      // A new request must not join a single flight that has failed or is being aborted.
      flight.abandoned.addEventListener('abort', land)
      return { flight, isNew: true }
    },
  }
}
