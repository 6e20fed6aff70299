import { setMaxListeners } from 'node:events'

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
        if (left.aborted) return leave()
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
