import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from '../shared/log.ts'

/** A connection is slow while its client takes less than so many bytes in so many milliseconds. */
export interface Pace {
  readonly bytes: number
  readonly ms: number
}

/**
 * Far below any line on which a long answer would ever arrive: 64 KiB in half a minute. A phone that loses its network for
 * that long has to ask again.
 */
const CLOSED_BELOW: Pace = { bytes: 64 * 1024, ms: 30_000 }

/** The clients' connections, by how fast they take what is sent to them. */
export interface Readers {
  /**
   * For how long a client has been taking what `bytes` of a pace are, in shares of its time: 1 is too slow to be kept, 0
   * has taken everything there is.
   */
  slowness(socket: Socket | null): number
  /** Looks after every connection of a server from now on. */
  follow(server: Server): void
}

/** How much a client had taken, and when, as it began to take the next `bytes` of the pace. */
interface Mark {
  readonly taken: number
  readonly at: number
}

/** How often connections are looked at in the time of a pace. */
const LOOKS = 30

/** What has left this process: a write that waits in it for the client is not taken before all of it is. */
const toTaken = (socket: Socket) => socket.bytesWritten - socket.writableLength

/**
 * Closes connections whose clients take next to nothing of what is sent to them: each holds memory, and with a long answer
 * a statement. A client that has taken everything so far, and waits for the database, is never slow.
 */
export function createReaders(log: Logger, pace: Pace = CLOSED_BELOW): Readers {
  const marks = new Map<Socket, Mark>()
  const slowness = (socket: Socket | null) => {
    const mark = socket === null ? undefined : marks.get(socket)
    if (socket === null || mark === undefined) return 0
    // Of a large write, such as a kept answer, nobody sees how far it is: it may take as long as all of it does.
    const share = Math.max(1, socket.writableLength / pace.bytes)
    return (performance.now() - mark.at) / (pace.ms * share)
  }
  const look = () => {
    let closed = 0
    for (const [socket, mark] of marks) {
      const taken = toTaken(socket)
      if (socket.writableLength === 0 || taken - mark.taken >= pace.bytes) {
        marks.set(socket, { taken, at: performance.now() })
      } else if (slowness(socket) >= 1) {
        // An orderly end would wait behind all that is on its way, up to some megabytes in the system's hands.
        socket.resetAndDestroy()
        closed++
      }
    }
    if (closed > 0) log.info({ closed }, 'connections of slow readers were closed')
  }
  return {
    slowness,
    follow: (server) => {
      const looking = setInterval(look, pace.ms / LOOKS).unref()
      server.once('close', () => clearInterval(looking))
      server.on('connection', (socket: Socket) => {
        marks.set(socket, { taken: 0, at: performance.now() })
        socket.once('close', () => marks.delete(socket))
      })
    },
  }
}
