import { setMaxListeners } from 'node:events'
import type { Asker } from './lines.ts'
import type { Queue } from './queue.ts'

/** Work that several may wait for. */
export interface Flight<T> {
  /** Aborted when the last one who waited has left before the end, and when the work has failed. */
  readonly abandoned: AbortSignal
  /**
   * The result, for somebody who waits until `left` is aborted; rejects with its reason then. Without it, to the end.
   */
  join(left?: AbortSignal): Promise<T>
}

interface QueuedFlight<T> extends Flight<T> {
  /** Somebody else wants it, who may have a better place in the queue. */
  alsoFor(asker: Asker): void
}

/** Begins work at once. Whoever begins it has to join at once too: with nobody on board it would never be abandoned. */
export function startFlight<T>(work: (abandoned: AbortSignal) => Promise<T>): Flight<T> {
  const abandonment = new AbortController()
  // Every statement of an answer listens to the signal, so that Node's warning of many listeners would be wrong.
  setMaxListeners(0, abandonment.signal)
  const result = work(abandonment.signal)
  // After a failure the other statements of the same answer are of no use any more: they end too.
  result.catch((error: unknown) => abandonment.abort(error))
  let waiting = 0
  return {
    abandoned: abandonment.signal,
    join: async (left) => {
      waiting++
      if (left === undefined) return result
      return new Promise<T>((resolve, reject) => {
        const leave = () => {
          waiting--
          reject(left.reason)
          if (waiting === 0) abandonment.abort(left.reason)
        }
        left.addEventListener('abort', leave, { once: true })
        const stay = () => left.removeEventListener('abort', leave)
        result.then(
          (value) => {
            stay()
            resolve(value)
          },
          (error: unknown) => {
            stay()
            reject(error)
          },
        )
      })
    },
  }
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
      const landing = async (abandoned: AbortSignal) => {
        const result = await work(abandoned)
        land()
        return result
      }
      const flight: QueuedFlight<T> =
        queue === undefined || asker === undefined
          ? { ...startFlight(landing), alsoFor: () => {} }
          : startQueued(queue, asker, landing)
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
