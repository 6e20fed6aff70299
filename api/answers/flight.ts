import { setMaxListeners } from 'node:events'

/** Work with a result that several requests share (single flight). */
export interface Flight<T> {
  /** Aborted when all waiting requests have left before the end, and when the work has failed. */
  readonly abandoned: AbortSignal
  /** Waits for the result until `left` is aborted, then rejects with its reason. Without `left`, waits to the end. */
  join(left?: AbortSignal): Promise<T>
}

/**
 * Starts work immediately. The caller must `join` in the same turn: work without a waiting request is never aborted.
 */
export function startFlight<T>(work: (abandoned: AbortSignal) => Promise<T>): Flight<T> {
  const abandonment = new AbortController()
  // Every statement of an answer listens to the signal, so Node's warning about many listeners would be wrong.
  setMaxListeners(0, abandonment.signal)
  const result = work(abandonment.signal)
  // After a failure the answer's other statements are useless and are aborted too.
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
