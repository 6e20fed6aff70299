import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from '../../shared/telemetry/log.ts'

/** A client is slow while it takes less than so many bytes in so many milliseconds. */
export interface Pace {
  readonly bytes: number
  readonly ms: number
}

/**
 * 64 KiB in half a minute: on a slower line no long answer would ever arrive. A phone that has no network for half a
 * minute has to ask again.
 */
const CLOSED_BELOW: Pace = { bytes: 64 * 1024, ms: 30_000 }

/**
 * When places are scarce, a client that needs this share of the pace's time or more for its bytes (five seconds) is
 * closed.
 */
const GIVES_WAY = 1 / 6

/** The clients' connections, by how fast they take what is sent to them. */
export interface Readers {
  /** Closes the connection of the slowest of these, and tells which it was; none of them may be slow. */
  closeSlowest<Response extends { readonly socket: Socket | null }>(among: Iterable<Response>): Response | undefined
  /** Looks after every connection of a server from now on. */
  watch(server: Server): void
}

/** Where the count of a client's next `bytes` began: how much it had taken by then, and how many looks ago that was. */
interface Mark {
  taken: number
  looks: number
}

/**
 * How often connections are looked at in the time of a pace. Looks are counted and not time: while the process itself
 * stood still no client could be seen to read.
 */
const LOOKS = 30

/**
 * How many bytes have left this process. Of a write that is still waiting here nothing counts before all of it has
 * left.
 */
const toTaken = (socket: Socket) => socket.bytesWritten - socket.writableLength

/**
 * Closes connections whose clients take next to nothing of what is sent to them: each holds memory, and with a long
 * answer a statement. A client that has taken everything so far, and waits for the database, is never slow.
 */
export function createReaders(log: Logger, pace: Pace = CLOSED_BELOW): Readers {
  const marks = new Map<Socket, Mark>()
  // How long a client has been taking its current `bytes`, as a share of the pace's time.
  const toSlowness = (socket: Socket | null) => {
    const mark = socket === null ? undefined : marks.get(socket)
    if (socket === null || mark === undefined) return 0
    // How much of a large write, such as a kept answer, has been taken cannot be seen: it gets the time of all its
    // bytes.
    const share = Math.max(1, socket.writableLength / pace.bytes)
    return mark.looks / (LOOKS * share)
  }
  const close = (sockets: readonly Socket[]) => {
    // An orderly end would have to wait until the client has taken what the system holds for it, up to some megabytes.
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
