import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from '../../shared/telemetry/log.ts'

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

/** From this share of a pace's time on a client gives way to another: it takes 64 KiB in no less than five seconds. */
const GIVES_WAY = 1 / 6

/** The clients' connections, by how fast they take what is sent to them. */
export interface Readers {
  /** Closes the connection of the slowest of these, and tells which it was; none of them may be slow. */
  closeSlowest<Response extends { readonly socket: Socket | null }>(among: Iterable<Response>): Response | undefined
  /** Looks after every connection of a server from now on. */
  watch(server: Server): void
}

/** How much a client had taken as it began to take the next `bytes` of the pace, and how many looks ago that was. */
interface Mark {
  taken: number
  looks: number
}

/**
 * How often connections are looked at in the time of a pace. Looks are counted instead of time: a process that stood still
 * has seen nobody read.
 */
const LOOKS = 30

/** What has left this process: a write that waits in it for the client is not taken before all of it is. */
const toTaken = (socket: Socket) => socket.bytesWritten - socket.writableLength

/**
 * Closes connections whose clients take next to nothing of what is sent to them: each holds memory, and with a long answer
 * a statement. A client that has taken everything so far, and waits for the database, is never slow.
 */
export function createReaders(log: Logger, pace: Pace = CLOSED_BELOW): Readers {
  const marks = new Map<Socket, Mark>()
  // For how long a client has been taking as much as the pace wants, as a share of its time.
  const toSlowness = (socket: Socket | null) => {
    const mark = socket === null ? undefined : marks.get(socket)
    if (socket === null || mark === undefined) return 0
    // Of a large write, such as a kept answer, nobody sees how far it is: it may take as long as all of it does.
    const share = Math.max(1, socket.writableLength / pace.bytes)
    return mark.looks / (LOOKS * share)
  }
  const close = (sockets: readonly Socket[]) => {
    // An orderly end would wait behind all that is on its way, up to some megabytes in the system's hands.
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
