import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from '../../shared/telemetry/log.ts'

/** A client is slow while it reads less than `bytes` in `ms` milliseconds. */
export interface Pace {
  readonly bytes: number
  readonly ms: number
}

/**
 * 64 KiB in 30 seconds: on a slower connection a long answer would never arrive. A phone without network for 30 seconds
 * must send its request again.
 */
const CLOSED_BELOW: Pace = { bytes: 64 * 1024, ms: 30_000 }

/**
 * When slots are scarce, a client is closed if its next `bytes` take this share of the pace's time or more (five
 * seconds).
 */
const GIVES_WAY = 1 / 6

/** Client connections by their reading speed. */
export interface Readers {
  /**
   * Closes the connection of the slowest reader among the given responses and returns its response; undefined if none
   * is slow.
   */
  closeSlowest<Response extends { readonly socket: Socket | null }>(among: Iterable<Response>): Response | undefined
  /** Observes every new connection of a server. */
  watch(server: Server): void
}

/** Start of the measurement of a client's next `bytes`: the bytes read until then, and the number of checks since. */
interface Mark {
  taken: number
  looks: number
}

/**
 * Number of checks per pace interval. Checks are counted instead of time: while the process was blocked it could not
 * observe reads.
 */
const LOOKS = 30

/** Number of bytes that have left this process. A pending write counts only after all of it has left. */
const toTaken = (socket: Socket) => socket.bytesWritten - socket.writableLength

/**
 * Closes connections whose clients read almost nothing: each holds memory, and with a long answer a database statement.
 * A client that has read everything sent so far and waits for the database is never slow.
 */
export function createReaders(log: Logger, pace: Pace = CLOSED_BELOW): Readers {
  const marks = new Map<Socket, Mark>()
  // How long the client has needed for its current `bytes`, as a share of the pace's time.
  const toSlowness = (socket: Socket | null) => {
    const mark = socket === null ? undefined : marks.get(socket)
    if (socket === null || mark === undefined) return 0
    // The progress of a large write, such as a cached answer, is not visible. The client gets the time for all its
    // bytes.
    const share = Math.max(1, socket.writableLength / pace.bytes)
    return mark.looks / (LOOKS * share)
  }
  const close = (sockets: readonly Socket[]) => {
    // A graceful close would wait until the client has read the kernel's buffer, up to some megabytes.
    for (const socket of sockets) socket.resetAndDestroy()
    if (sockets.length > 0) log.info({ closed: sockets.length }, 'connections of slow readers were closed')
  }
  const look = () => {
    const tooSlow: Socket[] = []
    for (const [socket, mark] of marks) {
      const taken = toTaken(socket)
      mark.looks += 1
      if (socket.writableLength === 0 || taken - mark.taken >= pace.bytes) Object.assign(mark, { taken, looks: 0 })
      else if (toSlowness(socket) >= 1) tooSlow.push(socket)
    }
    close(tooSlow)
  }
  return {
    closeSlowest: (among) => {
      const all = [...among].map((response) => ({ response, slowness: toSlowness(response.socket) }))
      const [slowest] = all.sort((one, other) => other.slowness - one.slowness)
      if (slowest === undefined || slowest.slowness < GIVES_WAY || slowest.response.socket === null) return undefined
      close([slowest.response.socket])
      return slowest.response
    },
    watch: (server) => {
      const looking = setInterval(look, pace.ms / LOOKS).unref()
      server.once('close', () => clearInterval(looking))
      server.on('connection', (socket: Socket) => {
        marks.set(socket, { taken: 0, looks: 0 })
        socket.once('close', () => marks.delete(socket))
      })
    },
  }
}
