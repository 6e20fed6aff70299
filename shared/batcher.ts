import { AsyncResource } from 'node:async_hooks'
import { setMaxListeners } from 'node:events'

/** Work with a result that several requests share (single flight). */
export interface SharedCall<T> {
  /** Aborted when all waiting requests were aborted before the end, and when the work has failed. */
  readonly abandoned: AbortSignal
  /** Waits for the result until `signal` is aborted, then rejects with its reason. Without `signal`, waits to the end. */
  join(signal?: AbortSignal): Promise<T>
}

/**
 * Starts work immediately. The caller must `join` in the same turn: work without a waiting request is never aborted.
 */
export function startSharedCall<T>(work: (abandoned: AbortSignal) => Promise<T>): SharedCall<T> {
  const abandonment = new AbortController()
  // Every statement of an answer listens to the signal, so Node's warning about many listeners would be wrong.
  setMaxListeners(0, abandonment.signal)
  const result = work(abandonment.signal)
  // After a failure the answer's other statements are useless and are aborted too.
  result.catch((error: unknown) => abandonment.abort(error))
  let waiting = 0
  return {
    abandoned: abandonment.signal,
    join: async (signal) => {
      waiting++
      if (signal === undefined) return result
      return new Promise<T>((resolve, reject) => {
        const disconnect = () => {
          waiting--
          reject(signal.reason)
          if (waiting === 0) abandonment.abort(signal.reason)
        }
        if (signal.aborted) return disconnect()
        signal.addEventListener('abort', disconnect, { once: true })
        const unsubscribe = () => signal.removeEventListener('abort', disconnect)
        result.then(
          (value) => {
            unsubscribe()
            resolve(value)
          },
          (error: unknown) => {
            unsubscribe()
            reject(error)
          },
        )
      })
    },
  }
}

/** Reads a value for a caller that waits until `signal` is aborted; then rejects with its reason. */
export type ReadFor<Query, Value> = (query: Query, signal: AbortSignal) => Promise<Value>

interface BatcherOptions<Query, Value> {
  /** Reads the values for a batch, in order. The signal is aborted when all callers have disconnected. */
  readonly read: (all: readonly Query[], abandoned: AbortSignal) => Promise<readonly Value[]>
  /** Maximum number of concurrent reads. Further requests wait for the next batch. */
  readonly concurrency: number
  /** Maximum total weight of a batch. A request with a larger weight is read alone. */
  readonly most: number
  readonly weigh: (query: Query) => number
}

interface Waiting<Query, Value> {
  readonly query: Query
  readonly signal: AbortSignal | undefined
  /** The caller's async context, for traces: a read runs in the context of the batch's first caller. */
  readonly scope: AsyncResource
  /** Whether the request must be read alone. */
  readonly isAlone: boolean
  begin(value: Promise<Value>): void
}

/**
 * Batches requests that arrive while `concurrency` reads are running, and reads each batch with one statement: a statement
 * costs ClickHouse milliseconds, even if it reads little. Requests of callers that disconnected before their turn are dropped.
 * When a batch fails, each of its requests is read alone, because one request may have caused the failure.
 */
export function createBatcher<Query, Value>(
  options: BatcherOptions<Query, Value>,
): (query: Query, signal?: AbortSignal) => Promise<Value> {
  const { read, concurrency, most, weigh } = options
  const waiting = new Set<Waiting<Query, Value>>()
  let underway = 0

  const take = (): Waiting<Query, Value>[] => {
    const taken: Waiting<Query, Value>[] = []
    let weight = 0
    for (const one of waiting) {
      weight += weigh(one.query)
      if (taken.length > 0 && (weight > most || one.isAlone)) break
      taken.push(one)
      waiting.delete(one)
      if (one.isAlone) break
    }
    return taken
  }
  const readFor = async (all: readonly Waiting<Query, Value>[], abandoned: AbortSignal) => {
    try {
      return await read(
        all.map(({ query }) => query),
        abandoned,
      )
    } finally {
      underway -= 1
      next()
    }
  }
  const next = () => {
    if (underway === concurrency) return
    const [first, ...rest] = take()
    if (first === undefined) return
    underway += 1
    const all = [first, ...rest]
    const call = first.scope.runInAsyncScope(() => startSharedCall((abandoned) => readFor(all, abandoned)))
    for (const [place, one] of all.entries()) {
      const reading = call.join(one.signal).then((values) => values[place] as Value)
      one.begin(rest.length === 0 ? reading : reading.catch(() => wait({ ...one, isAlone: true })))
    }
  }
  const wait = ({ query, signal, scope, isAlone }: Omit<Waiting<Query, Value>, 'begin'>) =>
    new Promise<Value>((resolve, reject) => {
      signal?.throwIfAborted()
      const drop = () => {
        waiting.delete(one)
        reject(signal?.reason)
      }
      const one: Waiting<Query, Value> = {
        ...{ query, signal, scope, isAlone },
        begin: (value) => {
          signal?.removeEventListener('abort', drop)
          resolve(value)
        },
      }
      signal?.addEventListener('abort', drop, { once: true })
      waiting.add(one)
      next()
    })
  return (query, signal) => wait({ query, signal, scope: new AsyncResource('Batcher'), isAlone: false })
}
