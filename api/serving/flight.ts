import { setMaxListeners } from 'node:events'
import { toUnavailable } from '../problem/problem.ts'

/** Work that several may wait for. */
export interface Flight<T> {
  /** Aborted when the last one who waited has left before the end, and when the work has failed. */
  readonly abandoned: AbortSignal
  /**
   * The result, for somebody who waits until `left` is aborted; rejects with its reason then. Without it, to the end.
   */
  join(left?: AbortSignal): Promise<T>
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
  readonly isFull: boolean
  /**
   * The flight for a key, begun with `work` where there is none.
   * @throws Problem `unavailable` when there are too many.
   */
  board(key: string, work: (abandoned: AbortSignal) => Promise<T>): { flight: Flight<T>; isNew: boolean }
}

/** At most so many flights at once. */
export function createFlights<T>(most: number): Flights<T> {
  const underway = new Map<string, Flight<T>>()
  return {
    get isFull() {
      return underway.size >= most
    },
    board: (key, work) => {
      const known = underway.get(key)
      if (known !== undefined) return { flight: known, isNew: false }
      if (underway.size >= most) throw toUnavailable('Too many answers are being made at once.')
      const flight = startFlight(async (abandoned) => {
        const result = await work(abandoned)
        land()
        return result
      })
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
