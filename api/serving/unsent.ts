import type { ServerResponse } from 'node:http'
import { toUnavailable } from '../problem/problem.ts'
import type { Readers } from './slow-readers.ts'

/** A memory budget for new answers until their clients have read them (response budget). */
export interface Unsent {
  /**
   * Counts an answer's bytes until its response closes. Bytes shared by several responses count once. Beyond the budget
   * the slowest client is closed.
   * @throws Problem `unavailable` when none of the clients is slow.
   */
  take(response: ServerResponse, body: Buffer): void
}

export function createUnsent(readers: Pick<Readers, 'closeSlowest'>, mostBytes: number): Unsent {
  const held = new Map<ServerResponse, Buffer>()
  const holders = new Map<Buffer, number>()
  let total = 0
  const release = (response: ServerResponse) => {
    const body = held.get(response)
    if (body === undefined) return
    held.delete(response)
    const left = (holders.get(body) ?? 1) - 1
    if (left > 0) return void holders.set(body, left)
    holders.delete(body)
    total -= body.length
  }
  const toMore = (body: Buffer) => (holders.has(body) ? 0 : body.length)
  return {
    take: (response, body) => {
      // A destroyed response emits no further `close` event.
      if (response.destroyed) return
      while (total + toMore(body) > mostBytes) {
        const slowest = readers.closeSlowest(held.keys())
        if (slowest === undefined) throw toUnavailable('Too much waits for clients that read slowly.')
        release(slowest)
      }
      total += toMore(body)
      held.set(response, body)
      holders.set(body, (holders.get(body) ?? 0) + 1)
      response.once('close', () => release(response))
    },
  }
}
