import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from '../../shared/telemetry/log.ts'
import { Problem, toUnavailable } from '../problem/problem.ts'
import type { ByteBudget, ClientKey, ResponseLimit } from './admission.ts'

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
interface SlowReaders {
  /**
   * Closes the connection of the slowest reader among the given responses and returns its response; undefined if none
   * is slow.
   */
  closeSlowest<Response extends { readonly socket: Socket | null }>(among: Iterable<Response>): Response | undefined
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
 * Closes connections whose clients read almost nothing: each holds memory, and with a long answer a database statement.
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

type CloseSlowest = Pick<SlowReaders, 'closeSlowest'>

/** `Retry-After` in seconds for a client with its maximum of open responses. */
const RETRY_AFTER = '10'

/** Creates a limit of open responses: `max` in total and `maxPerClient` for each client. */
export function createResponseLimit(readers: CloseSlowest, max: number, maxPerClient = max): ResponseLimit {
  const open = new Map<ServerResponse, ClientKey>()
  /** Closes the slowest of these responses. Returns whether one of them was slow. */
  const makeRoom = (among: Iterable<ServerResponse>): boolean => {
    const slowest = readers.closeSlowest(among)
    return slowest !== undefined && open.delete(slowest)
  }
  return {
    add: (response, client) => {
      const own = [...open].flatMap(([one, its]) => (its === client ? [one] : []))
      if (own.length >= maxPerClient && !makeRoom(own)) {
        const detail = `${own.length} long answers of yours are on their way: read them first.`
        throw new Problem('rate_limited', detail, { headers: { 'Retry-After': RETRY_AFTER } })
      }
      if (open.size >= max && !makeRoom(open.keys())) throw toUnavailable('Too many long answers are being sent.')
      open.set(response, client)
    },
    remove: (response) => void open.delete(response),
  }
}

/** Creates a memory budget for answers until their clients have read them. */
export function createByteBudget(readers: CloseSlowest, maxBytes: number): ByteBudget {
  const bodies = new Map<ServerResponse, Buffer>()
  /** Number of responses for each body. */
  const uses = new Map<Buffer, number>()
  let total = 0
  const remove = (response: ServerResponse) => {
    const body = bodies.get(response)
    if (body === undefined) return
    bodies.delete(response)
    const remaining = (uses.get(body) ?? 1) - 1
    if (remaining > 0) return void uses.set(body, remaining)
    uses.delete(body)
    total -= body.length
  }
  const countMore = (body: Buffer) => (uses.has(body) ? 0 : body.length)
  return {
    add: (response, body) => {
      // A destroyed response emits no further `close` event.
      if (response.destroyed) return
      while (total + countMore(body) > maxBytes) {
        const slowest = readers.closeSlowest(bodies.keys())
        if (slowest === undefined) throw toUnavailable('Too much waits for clients that read slowly.')
        remove(slowest)
      }
      total += countMore(body)
      bodies.set(response, body)
      uses.set(body, (uses.get(body) ?? 0) + 1)
      response.once('close', () => remove(response))
    },
  }
}
