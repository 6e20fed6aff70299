import type { Server, Socket } from 'node:net'
import { type Asker, createLines } from './lines.ts'

/**
 * So many connections are read again in a turn of the event loop, which accepts a single new one (libuv since 1.45). Were
 * thousands read in a turn, only to be refused, whoever connects meanwhile would wait for many seconds, and be reset at last.
 */
const IN_A_TURN = 4
/** In a turn after which nobody had connected nobody waits for that. What the database answers still waits for the turn. */
const IN_A_QUIET_TURN = 32

/** The connections of those who were just refused. */
export interface Refused {
  /**
   * Reads nothing more from a connection before its turn, which is the next one unless many were refused: those of one client
   * wait behind each other.
   */
  hold(client: string, socket: Socket): void
  /** Takes note of whoever connects to a server. */
  watch(server: Server): void
}

export function createRefused(): Refused {
  let fresh = new Map<Socket, Asker>()
  const lines = createLines<Socket>()
  const held = new Set<Socket>()
  let isQuiet = true
  const endTurn = () => {
    let count = 0
    const most = isQuiet ? IN_A_QUIET_TURN : IN_A_TURN
    isQuiet = true
    for (; count < most && held.size > 0; count += 1) {
      const socket = lines.take(() => true) as Socket
      held.delete(socket)
      socket.resume()
    }
    for (const [socket, asker] of [...fresh].slice(most - count)) {
      // Several requests of a connection may be refused in a turn.
      if (held.has(socket)) continue
      held.add(socket.pause())
      lines.add(asker, socket)
    }
    fresh = new Map()
    if (held.size > 0) setImmediate(endTurn)
  }
  return {
    // Not paused at once: Node reads on when a response ends.
    hold: (client, socket) => {
      if (held.size === 0 && fresh.size === 0) setImmediate(endTurn)
      fresh.set(socket, { client, route: '' })
    },
    watch: (server) => {
      server.on('connection', () => {
        isQuiet = false
      })
    },
  }
}
