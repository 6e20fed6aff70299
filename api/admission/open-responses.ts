import type { ServerResponse } from 'node:http'
import { Problem, toUnavailable } from '../problem/problem.ts'
import type { ByteBudget, ClientKey, ResponseLimit } from './admission.ts'
import type { SlowReaders } from './slow-readers.ts'

type CloseSlowest = Pick<SlowReaders, 'closeSlowest'>

/** `Retry-After` in seconds for a client with its maximum of open responses. */
const RETRY_AFTER = '10'

/** Creates a limit of open responses: `max` in total and `maxPerClient` for each client. */
export function createResponseLimit(readers: CloseSlowest, max: number, maxPerClient = max): ResponseLimit {
  const open = new Map<ServerResponse, ClientKey>()
  /** Closes the slowest of these responses. Returns whether one of them was slow. */
  const makeRoom = (among: Iterable<ServerResponse>): boolean => {
    const slowest = readers.closeSlowest(among)
    return slowest !== undefined && open.delete(slowest)
  }
  return {
    add: (response, client) => {
      const own = [...open].flatMap(([one, its]) => (its === client ? [one] : []))
      if (own.length >= maxPerClient && !makeRoom(own)) {
        const detail = `${own.length} long answers of yours are on their way: read them first.`
        throw new Problem('rate_limited', detail, { headers: { 'Retry-After': RETRY_AFTER } })
      }
      if (open.size >= max && !makeRoom(open.keys()))
        throw toUnavailable('Too many long answers are on their way at once.')
      open.set(response, client)
    },
    remove: (response) => void open.delete(response),
  }
}

/** Creates a memory budget for answers until their clients have read them. */
export function createByteBudget(readers: CloseSlowest, maxBytes: number): ByteBudget {
  const bodies = new Map<ServerResponse, Buffer>()
  /** Number of responses for each body. */
  const uses = new Map<Buffer, number>()
  let total = 0
  const remove = (response: ServerResponse) => {
    const body = bodies.get(response)
    if (body === undefined) return
    bodies.delete(response)
    const left = (uses.get(body) ?? 1) - 1
    if (left > 0) return void uses.set(body, left)
    uses.delete(body)
    total -= body.length
  }
  const countMore = (body: Buffer) => (uses.has(body) ? 0 : body.length)
  return {
    add: (response, body) => {
      // A destroyed response emits no further `close` event.
      if (response.destroyed) return
      while (total + countMore(body) > maxBytes) {
        const slowest = readers.closeSlowest(bodies.keys())
        if (slowest === undefined) throw toUnavailable('Too much waits for clients that read slowly.')
        remove(slowest)
      }
      total += countMore(body)
      bodies.set(response, body)
      uses.set(body, (uses.get(body) ?? 0) + 1)
      response.once('close', () => remove(response))
    },
  }
}
