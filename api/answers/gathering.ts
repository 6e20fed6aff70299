import { AsyncResource } from 'node:async_hooks'
import { startFlight } from './flight.ts'

/** Reads a value for a caller that waits until `left` is aborted; then rejects with its reason. */
export type ReadFor<Asked, Value> = (asked: Asked, left: AbortSignal) => Promise<Value>

interface GatheringOptions<Asked, Value> {
  /** Reads the values for a batch, in order. The signal is aborted when all callers have left. */
  readonly read: (all: readonly Asked[], abandoned: AbortSignal) => Promise<readonly Value[]>
  /** Maximum number of concurrent reads. Further requests wait for the next batch. */
  readonly atOnce: number
  /** Maximum total weight of a batch. A request with a larger weight is read alone. */
  readonly most: number
  readonly weigh: (asked: Asked) => number
}

interface Waiting<Asked, Value> {
  readonly asked: Asked
  readonly left: AbortSignal
  /** The caller's async context, for traces: a read runs in the context of the batch's first caller. */
  readonly scope: AsyncResource
  /** Whether the request must be read alone. */
  readonly isAlone: boolean
  begin(value: Promise<Value>): void
}

/**
 * Batches requests that arrive while `atOnce` reads are running, and reads each batch with one statement: a statement
 * costs ClickHouse milliseconds, even if it reads little. Requests of callers that left before their turn are dropped.
 * When a batch fails, each of its requests is read alone, because one request may have caused the failure.
 */
export function createGathering<Asked, Value>(options: GatheringOptions<Asked, Value>): ReadFor<Asked, Value> {
  const { read, atOnce, most, weigh } = options
  const waiting = new Set<Waiting<Asked, Value>>()
  let underway = 0

  const take = (): Waiting<Asked, Value>[] => {
    const taken: Waiting<Asked, Value>[] = []
    let weight = 0
    for (const one of waiting) {
      weight += weigh(one.asked)
      if (taken.length > 0 && (weight > most || one.isAlone)) break
      taken.push(one)
      waiting.delete(one)
      if (one.isAlone) break
    }
    return taken
  }
  const readFor = async (all: readonly Waiting<Asked, Value>[], abandoned: AbortSignal) => {
    try {
      return await read(
        all.map(({ asked }) => asked),
        abandoned,
      )
    } finally {
      underway -= 1
      next()
    }
  }
  const next = () => {
    if (underway === atOnce) return
    const [first, ...others] = take()
    if (first === undefined) return
    underway += 1
    const all = [first, ...others]
    const flight = first.scope.runInAsyncScope(() => startFlight((abandoned) => readFor(all, abandoned)))
    for (const [place, one] of all.entries()) {
      const reading = flight.join(one.left).then((values) => values[place] as Value)
      one.begin(others.length === 0 ? reading : reading.catch(() => wait({ ...one, isAlone: true })))
    }
  }
  const wait = ({ asked, left, scope, isAlone }: Omit<Waiting<Asked, Value>, 'begin'>) =>
    new Promise<Value>((resolve, reject) => {
      left.throwIfAborted()
      const leave = () => {
        waiting.delete(one)
        reject(left.reason)
      }
      const one: Waiting<Asked, Value> = {
        ...{ asked, left, scope, isAlone },
        begin: (value) => {
          left.removeEventListener('abort', leave)
          resolve(value)
        },
      }
      left.addEventListener('abort', leave, { once: true })
      waiting.add(one)
      next()
    })
  return (asked, left) => wait({ asked, left, scope: new AsyncResource('Gathering'), isAlone: false })
}
