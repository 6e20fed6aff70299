import type { Server, Socket } from 'node:net'
import { type Asker, createLines } from './lines.ts'

/**
 * Number of connections resumed per turn of the event loop. A turn accepts only one new connection (libuv since 1.45).
 * If thousands of connections were read in one turn only to be rejected, new clients would wait for many seconds and
 * finally be reset.
 */
const IN_A_TURN = 4
/**
 * Used when no client connected in the last turn. The limit remains because database results wait for the end of the
 * turn.
 */
const IN_A_QUIET_TURN = 32

/** Connections whose requests were just rejected. */
export interface Refused {
  /**
   * Pauses a connection until its turn. This is the next turn of the event loop unless many requests were rejected;
   * connections of one client take turns with those of other clients.
   */
  hold(client: string, socket: Socket): void
  /** Observes new connections of a server. */
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
      // Several requests of a connection may be rejected in one turn.
      if (held.has(socket)) continue
      held.add(socket.pause())
      lines.add(asker, socket)
    }
    fresh = new Map()
    if (held.size > 0) setImmediate(endTurn)
  }
  return {
    // The pause comes at the end of the turn, because Node resumes the socket when a response ends.
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
