import type { ServerResponse } from 'node:http'
import { toUnavailable } from '../problem/problem.ts'
import type { Readers } from './slow-readers.ts'

/** Answers that are sent once and not kept, until their clients have taken them: a budget of memory for all of them. */
export interface Unsent {
  /**
   * Counts an answer of so many bytes until its response closes. Where there are too many the slowest client is closed.
   * @throws Problem `unavailable` when none of the clients is slow.
   */
  take(response: ServerResponse, bytes: number): void
}

export function createUnsent(readers: Pick<Readers, 'closeSlowest'>, mostBytes: number): Unsent {
  const held = new Map<ServerResponse, number>()
  let total = 0
  const release = (response: ServerResponse) => {
    total -= held.get(response) ?? 0
    held.delete(response)
  }
  return {
    take: (response, bytes) => {
      // Of one whose client has left already nobody would say that it closes.
      if (response.destroyed) return
      while (total + bytes > mostBytes) {
        const slowest = readers.closeSlowest(held.keys())
        if (slowest === undefined) throw toUnavailable('Too much waits for clients that read slowly.')
        release(slowest)
      }
      held.set(response, bytes)
      total += bytes
      response.once('close', () => release(response))
    },
  }
}
