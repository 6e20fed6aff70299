import type { ServerResponse } from 'node:http'
import type { SlowReaders } from '../http/slow-readers.ts'
import { Problem, toUnavailable } from '../problem/problem.ts'
import type { ClientKey, ResponseLimit } from './admission.ts'

/** `Retry-After` in seconds for a client with its maximum of open responses. */
const RETRY_AFTER = '10'

interface OpenResponse {
  readonly response: ServerResponse
  readonly client: ClientKey
  readonly amount: number
}

/** Creates a limit for the sum of the amounts of open responses, in total and of each client. */
export function createResponseLimit(
  { closeSlowest }: Pick<SlowReaders, 'closeSlowest'>,
  max: number,
  maxPerClient = Number.POSITIVE_INFINITY,
): ResponseLimit {
  const open = new Set<OpenResponse>()
  /** Closes the slowest readers, of one client or of all, until the amount fits. Returns whether it fits. */
  const makeRoom = (more: number, most: number, client?: ClientKey): boolean => {
    const all = [...open].filter((one) => client === undefined || one.client === client)
    if (all.reduce((sum, { amount }) => sum + amount, more) <= most) return true
    const closed = closeSlowest(all.map(({ response }) => response))
    const found = all.find(({ response }) => response === closed)
    return found !== undefined && open.delete(found) && makeRoom(more, most, client)
  }
  return {
    add: (response, client, amount = 1) => {
      // A destroyed response emits no further `close` event.
      if (response.destroyed) return () => {}
      if (!makeRoom(amount, maxPerClient, client)) {
        const detail = 'Too many answers of yours are unread: read them first.'
        throw new Problem('rate_limited', detail, { headers: { 'Retry-After': RETRY_AFTER } })
      }
      if (!makeRoom(amount, max)) throw toUnavailable('Too many answers are unread.')
      const one = { response, client, amount }
      open.add(one)
      const release = () => void open.delete(one)
      response.once('close', release)
      return release
    },
  }
}
