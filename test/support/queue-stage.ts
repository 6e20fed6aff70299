import { setMaxListeners } from 'node:events'
import { createFlights } from '../../api/cache/flight.ts'
import { createQueue, type QueueOptions } from '../../api/serving/queue.ts'

const stays = new AbortController().signal
setMaxListeners(0, stays)

/** What has been promised happens before this resolves: nothing here waits for anything outside. */
export const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

/** A queue whose work ends when the test says so, in the order in which it began. */
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
  const board = async (client: string, route: string, name: string, left: AbortSignal = stays) => {
    const work = () => {
      begun.push(name)
      return new Promise<string>((resolve) => ends.push(() => resolve(name)))
    }
    return flights.board(name, work, { client, route }).flight.join(left)
  }
  /** Ends one after the other until nothing is under way, each after so many milliseconds. */
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

/** What a client asks for, so many times. */
export const names = (client: string, count: number) => Array.from({ length: count }, (_, n) => `${client}${n}`)
