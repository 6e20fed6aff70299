import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from '../../shared/telemetry/log.ts'

/** A client is too slow if it reads less than `bytes` in `ms` milliseconds. */
export interface MinimumRate {
  readonly bytes: number
  readonly ms: number
}

/**
 * 64 KiB in 30 seconds: on a slower connection a long answer would never arrive. A phone without network for 30 seconds
 * must send its request again.
 */
const MINIMUM_RATE: MinimumRate = { bytes: 64 * 1024, ms: 30_000 }

/** When places are scarce, a client counts as slow if its next `bytes` take this share of `ms` or more (five seconds). */
const SLOW_SHARE = 1 / 6

/**
 * Number of checks during `ms`. Checks are counted instead of time: while the process was blocked it could not observe
 * reads.
 */
const CHECKS = 30

/** Client connections by their reading speed. */
export interface SlowReaders {
  /**
   * Closes the connection of the slowest reader among the given responses and returns its response; undefined if none
   * is slow.
   */
  closeSlowest(among: Iterable<ServerResponse>): ServerResponse | undefined
  /** Observes every new connection of a server. */
  watch(server: Server): void
}

/** Progress of a client: the bytes that it had read when its current `bytes` began, and the checks since then. */
interface Progress {
  read: number
  checks: number
}

/** Number of bytes that have left this process. A pending write counts only after all of it has left. */
const countRead = (socket: Socket) => socket.bytesWritten - socket.writableLength

/**
 * Closes connections whose clients read almost nothing. Each uses memory, and a long answer also a database statement.
 * A client that has read everything sent so far and waits for the database is never slow.
 */
export function createSlowReaders(log: Logger, rate = MINIMUM_RATE): SlowReaders {
  const clients = new Map<Socket, Progress>()
  /** The time that the client has needed for its current `bytes`, as a share of `ms`. */
  const measureSlowness = (socket: Socket | null) => {
    const progress = socket === null ? undefined : clients.get(socket)
    if (socket === null || progress === undefined) return 0
    // The progress of a large write, such as a cached answer, is not visible. The client gets the time for all its
    // bytes.
    const share = Math.max(1, socket.writableLength / rate.bytes)
    return progress.checks / (CHECKS * share)
  }
  const close = (sockets: readonly Socket[]) => {
    // A graceful close would wait until the client has read the kernel's buffer, up to some megabytes.
    for (const socket of sockets) socket.resetAndDestroy()
    if (sockets.length > 0) log.info({ closed: sockets.length }, 'connections of slow readers were closed')
  }
  const check = () => {
    const tooSlow: Socket[] = []
    for (const [socket, progress] of clients) {
      const read = countRead(socket)
      progress.checks += 1
      if (socket.writableLength === 0 || read - progress.read >= rate.bytes)
        Object.assign(progress, { read, checks: 0 })
      else if (measureSlowness(socket) >= 1) tooSlow.push(socket)
    }
    close(tooSlow)
  }
  return {
    closeSlowest: (among) => {
      const all = [...among].map((response) => ({ response, slowness: measureSlowness(response.socket) }))
      const [slowest] = all.sort((a, b) => b.slowness - a.slowness)
      if (slowest === undefined || slowest.slowness < SLOW_SHARE || slowest.response.socket === null) return undefined
      close([slowest.response.socket])
      return slowest.response
    },
    watch: (server) => {
      const checking = setInterval(check, rate.ms / CHECKS).unref()
      server.once('close', () => clearInterval(checking))
      server.on('connection', (socket: Socket) => {
        clients.set(socket, { read: 0, checks: 0 })
        socket.once('close', () => clients.delete(socket))
      })
    },
  }
}
