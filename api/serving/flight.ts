import { type Flight, startFlight } from '../answers/flight.ts'
import type { Asker } from './lines.ts'
import type { Queue } from './queue.ts'

interface QueuedFlight<T> extends Flight<T> {
  /** Somebody else wants it, who may have a better place in the queue. */
  alsoFor(asker: Asker): void
}

/** Work under way, by what it is for: all who ask for the same meanwhile share one flight. */
export interface Flights<T> {
  /**
   * The flight for a key, begun with `work` where there is none, as soon as the asker's turn comes; at once without an
   * asker.
   * @throws Problem `unavailable` when it would have to wait too long.
   */
  board(key: string, work: (abandoned: AbortSignal) => Promise<T>, asker?: Asker): { flight: Flight<T>; isNew: boolean }
}

/** Work that begins when the queue has a place for it, and not at all when all who want it have left by then. */
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

/** Flights that wait in a queue. */
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
      // Whoever comes now must not wait for what has failed or is being broken off.
      flight.abandoned.addEventListener('abort', land)
      return { flight, isNew: true }
    },
  }
}
