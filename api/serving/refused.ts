import type { Socket } from 'node:net'

/**
 * So many connections are read again in a turn of the event loop, which accepts a single new one (libuv since 1.45). Were
 * thousands read in a turn, only to be refused, whoever connects meanwhile would wait for many seconds, and be reset at last.
 */
const IN_A_TURN = 4

/** The connections of those who were just refused. */
export interface Refused {
  /** Reads nothing more from a connection before its turn, which is the next one unless many were refused. */
  hold(socket: Socket): void
}

export function createRefused(): Refused {
  let fresh: Socket[] = []
  const held = new Set<Socket>()
  const endTurn = () => {
    let count = 0
    for (const socket of held) {
      if (count === IN_A_TURN) break
      held.delete(socket)
      socket.resume()
      count += 1
    }
    for (const socket of fresh.slice(IN_A_TURN - count)) held.add(socket.pause())
    fresh = []
    if (held.size > 0) setImmediate(endTurn)
  }
  return {
    // Not paused at once: Node reads on when a response ends.
    hold: (socket) => {
      if (held.size === 0 && fresh.length === 0) setImmediate(endTurn)
      fresh.push(socket)
    },
  }
}
