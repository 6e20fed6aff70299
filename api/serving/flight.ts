import { type Flight, startFlight } from '../answers/flight.ts'
import type { Asker } from './lines.ts'
import type { Queue } from './queue.ts'

interface QueuedFlight<T> extends Flight<T> {
  /** Another client requests the same work and may have a better position in the queue. */
  alsoFor(asker: Asker): void
}

/** Running work by key: concurrent requests with the same key share one single flight. */
export interface Flights<T> {
  /**
   * Returns the single flight for a key. If none exists, starts `work` when the queue admits it, or immediately without
   * an `asker`.
   * @throws Problem `unavailable` when the request would have to wait too long.
   */
  board(key: string, work: (abandoned: AbortSignal) => Promise<T>, asker?: Asker): { flight: Flight<T>; isNew: boolean }
}

/**
 * Starts the work when the queue has a free slot. Does not start it if all waiting clients have disconnected by then.
 */
function startQueued<T>(queue: Queue, asker: Asker, work: (abandoned: AbortSignal) => Promise<T>): QueuedFlight<T> {
  let alsoFor: QueuedFlight<T>['alsoFor'] = () => {}
  const flight = startFlight((abandoned) => {
    const ticket = queue.enter(asker, abandoned)
    alsoFor = ticket.alsoFor
    return workInTurn(ticket.turn, abandoned, work)
  })
  return { ...flight, alsoFor: (other) => alsoFor(other) }
}

async function workInTurn<T>(
  turn: ReturnType<Queue['enter']>['turn'],
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
export function createFlights<T>(queue: Queue): Flights<T> {
  const underway = new Map<string, QueuedFlight<T>>()
  return {
    board: (key, work, asker) => {
      const known = underway.get(key)
      if (known !== undefined) {
        if (asker !== undefined) known.alsoFor(asker)
        return { flight: known, isNew: false }
      }
      if (asker !== undefined) queue.admit(asker)
      const landing = async (abandoned: AbortSignal) => {
        const result = await work(abandoned)
        land()
        return result
      }
      const flight: QueuedFlight<T> =
        asker === undefined ? { ...startFlight(landing), alsoFor: () => {} } : startQueued(queue, asker, landing)
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
