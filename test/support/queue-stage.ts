import { setMaxListeners } from 'node:events'
import { createFlights } from '../../api/serving/flight.ts'
import { createQueue, type QueueOptions } from '../../api/serving/queue.ts'

const neverAborted = new AbortController().signal
setMaxListeners(0, neverAborted)

/** Resolves after all pending promises, because nothing here waits for external events. */
export const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

/** A queue whose work ends when the test says so, in the order of its start. */
export function createQueueStage(options: Partial<Omit<QueueOptions, 'clock' | 'meters'>> = {}) {
  const state = { now: 0, waiting: 0, refused: 0, waits: [] as number[] }
  const queue = createQueue({
    modest: 0,
    places: 1,
    most: 1_000,
    ...options,
    clock: () => state.now,
    meters: {
      waiting: (count) => void Object.assign(state, { waiting: count }),
      waited: (seconds) => void state.waits.push(seconds),
      refused: () => void state.refused++,
    },
  })
  const flights = createFlights<string>(queue)
  const begun: string[] = []
  const ends: (() => void)[] = []
  const board = async (client: string, route: string, name: string, left: AbortSignal = neverAborted) => {
    const work = () => {
      begun.push(name)
      return new Promise<string>((resolve) => ends.push(() => resolve(name)))
    }
    return flights.board(name, work, { client, route }).flight.join(left)
  }
  /** Ends the work items one by one until none is left; each takes `tookMs`. */
  const finish = async (tookMs = 0, most = Number.POSITIVE_INFINITY) => {
    for (let count = 0; count < most; count += 1) {
      await settled()
      const end = ends.shift()
      if (end === undefined) return
      state.now += tookMs
      end()
    }
    await settled()
  }
  return { state, queue, board, begun, finish }
}

/** `count` names of work items of a client. */
export const names = (client: string, count: number) => Array.from({ length: count }, (_, n) => `${client}${n}`)
