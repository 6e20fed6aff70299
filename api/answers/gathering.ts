import { AsyncResource } from 'node:async_hooks'
import { startFlight } from './flight.ts'

/** Reads what somebody asks for, who waits for it until `left` is aborted; rejects with its reason then. */
export type ReadFor<Asked, Value> = (asked: Asked, left: AbortSignal) => Promise<Value>

interface GatheringOptions<Asked, Value> {
  /** Reads for several: a value for each, in their order. Ends with the signal, once all of them have left. */
  readonly read: (all: readonly Asked[], abandoned: AbortSignal) => Promise<readonly Value[]>
  /** So many readings at once. Whoever comes then waits for the next one. */
  readonly atOnce: number
  /** How much a reading is for at most, as `weigh` tells it of each; one who asks for more has a reading alone. */
  readonly most: number
  readonly weigh: (asked: Asked) => number
}

interface Waiting<Asked, Value> {
  readonly asked: Asked
  readonly left: AbortSignal
  /** Who asks, for traces: a reading is told of the first of those whom it is for. */
  readonly scope: AsyncResource
  /** Whether it has a reading of its own. */
  readonly isAlone: boolean
  begin(value: Promise<Value>): void
}

/**
 * Gathers those who ask while as many are read for as may be at once, and reads for all of them in one go: a statement costs
 * ClickHouse milliseconds, however little it reads. Who leaves before its turn is not read for. When a reading for several
 * fails, each of them waits for one of its own: what one asks for may be to blame, and is not the others'.
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
