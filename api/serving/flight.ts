import { setMaxListeners } from 'node:events'

/** Work that several may wait for. */
export interface Flight<T> {
  /** Aborted when the last one who waited has left before the end, and when the work has failed. */
  readonly abandoned: AbortSignal
  /** The result, for somebody who waits until `left` is aborted; rejects with its reason then. Without it, to the end. */
  join(left?: AbortSignal): Promise<T>
}

/** Begins work at once. Whoever begins it has to join it before anybody else can leave. */
export function startFlight<T>(work: (abandoned: AbortSignal) => Promise<T>): Flight<T> {
  const abandonment = new AbortController()
  // Every statement of an answer listens: there is no number of them that tells of a leak.
  setMaxListeners(0, abandonment.signal)
  const result = work(abandonment.signal)
  // Everybody who waits hears of a failure. Other statements of the same answer may still run then: they end too.
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
