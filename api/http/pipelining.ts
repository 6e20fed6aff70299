import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { breakOff } from './break-off.ts'

/** Serializes the requests of each connection. */
export interface Pipelining {
  /**
   * Calls `answer` after the earlier responses of the connection have ended; never if the connection closes first.
   */
  take(
    request: IncomingMessage,
    response: ServerResponse,
    answer: (request: IncomingMessage, response: ServerResponse) => void,
  ): void
  /** Stops reading a connection, and ends it after the requests read so far are answered. */
  endAfterAnswers(socket: Duplex, end: () => void): void
  /** Observes the connections of a server. */
  watch(server: Server): void
}

/** Memory limit for requests that wait behind another one of their connection, over all connections. */
const MAX_WAITING_BYTES = 32 * 1024 * 1024
/** Estimated memory of a request in Node, in addition to the text of its head. */
const REQUEST_BYTES = 4 * 1024
/**
 * Maximum bytes of waiting requests parsed in one turn of the event loop: over all addresses, and per address. The
 * limit per address is a fraction of one chunk of the smallest requests.
 */
const MAX_TURN_BYTES = 32 * 1024 * 1024
const MAX_TURN_BYTES_OF_ADDRESS = 1024 * 1024
const REST = 4

interface Waiting {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly answer: Parameters<Pipelining['take']>[2]
}

interface Connection {
  readonly socket: Duplex
  /** The response in progress; earlier ones have ended. */
  current: ServerResponse
  /** Whether the next request begins when `current` closes. */
  isWatched: boolean
  waiting: Waiting[]
  /** Memory of the waiting requests. */
  bytes: number
  /** Ends the connection after all earlier requests are answered. */
  end: (() => void) | undefined
}

const callbacks = new WeakMap<ServerResponse, Set<() => void>>()

/**
 * Calls back once when the response has ended or its client has disconnected, in the order of registration. The
 * callbacks of a response share one listener: `stream.pipeline` adds seven more, and Node warns of a leak from the
 * eleventh on. @returns a function that removes the callback.
 */
export function onClose(response: ServerResponse, callback: () => void): () => void {
  const own = callbacks.get(response) ?? listen(response)
  own.add(callback)
  return () => void own.delete(callback)
}

function listen(response: ServerResponse): Set<() => void> {
  const own = new Set<() => void>()
  callbacks.set(response, own)
  response.once('close', () => {
    for (const callback of own) callback()
  })
  return own
}

/**
 * Pauses the connections of one address, or of all, when too many waiting requests were parsed in one turn of the event
 * loop. Node frees the requests of a closed connection only at the end of the turn: chunks of a thousand connections in
 * one turn would fill the heap. The connections resume after `REST` times the turn's duration, so that other clients
 * get the remaining time.
 */
function createRotation() {
  const addresses = new Map<Socket, string>()
  let bytes = new Map<string, number>()
  let [total, startedAt] = [0, 0]
  let stopped = new Set<Socket>()
  const resume = (sockets: Iterable<Socket>) => {
    for (const socket of sockets) if (!socket.destroyed) socket.resume()
  }
  const end = () => {
    if (stopped.size > 0) setTimeout(resume, REST * (performance.now() - startedAt), stopped)
    bytes = new Map()
    stopped = new Set()
    total = 0
  }
  const stop = (isStopped: (address: string) => boolean) => {
    for (const [socket, address] of addresses) {
      if (isStopped(address) && !socket.isPaused()) stopped.add(socket.pause())
    }
  }
  /** Whether adding `more` crosses the limit. */
  const isCrossed = (sum: number, more: number, limit: number) => sum <= limit && sum + more > limit
  return {
    count: (socket: Socket, more: number) => {
      if (total === 0) {
        startedAt = performance.now()
        setImmediate(end)
      }
      const address = addresses.get(socket) ?? ''
      const own = bytes.get(address) ?? 0
      if (isCrossed(own, more, MAX_TURN_BYTES_OF_ADDRESS)) stop((one) => one === address)
      if (isCrossed(total, more, MAX_TURN_BYTES)) stop(() => true)
      bytes.set(address, own + more)
      total += more
    },
    watch: (server: Server) => {
      server.on('connection', (socket: Socket) => {
        addresses.set(socket, socket.remoteAddress ?? '')
        socket.once('close', () => addresses.delete(socket))
      })
    },
  }
}

const toBytes = ({ rawHeaders, url = '' }: IncomingMessage) =>
  rawHeaders.reduce((sum, { length }) => sum + length, REQUEST_BYTES + url.length)

/**
 * Answers the requests of a connection in order. Node parses all requests of a 64 kB chunk synchronously. While
 * requests wait, the socket is paused, so that a connection holds the requests of one chunk only. All connections
 * together hold at most `maxBytes`: beyond the limit the connection that holds most is closed. A paused socket does not
 * notice a disconnect, so only the sockets of pipelining clients are paused.
 */
export function createPipelining(maxBytes = MAX_WAITING_BYTES): Pipelining {
  const connections = new WeakMap<Duplex, Connection>()
  const holders = new Set<Connection>()
  const rotation = createRotation()
  let total = 0

  const count = (connection: Connection, bytes: number) => {
    connection.bytes += bytes
    total += bytes
    if (connection.bytes > 0) holders.add(connection)
    else holders.delete(connection)
  }
  const drop = (connection: Connection) => {
    connection.waiting = []
    connection.end = undefined
    count(connection, -connection.bytes)
  }
  const isPaused = ({ waiting, end }: Connection) => waiting.length > 0 || end !== undefined
  const open = (socket: Duplex, current: ServerResponse): Connection => {
    const connection = { socket, current, isWatched: false, waiting: [], bytes: 0, end: undefined }
    connections.set(socket, connection)
    // Node resumes the socket at the end of each response.
    socket.on('resume', () => {
      if (isPaused(connection)) socket.pause()
    })
    return connection
  }
  /** Continues in a later turn of the event loop: a connection with thousands of requests must not block the others. */
  const watch = (connection: Connection) => {
    if (connection.isWatched) return
    connection.isWatched = true
    onClose(connection.current, () => setImmediate(proceed, connection))
  }
  const proceed = (connection: Connection) => {
    const { socket, waiting } = connection
    connection.isWatched = false
    if (socket.destroyed || !socket.writable) return drop(connection)
    const next = waiting.shift()
    if (next === undefined) return connection.end?.()
    count(connection, -toBytes(next.request))
    connection.current = next.response
    next.answer(next.request, next.response)
    // Registered after the listeners of the answer itself, which free its resources.
    if (isPaused(connection)) watch(connection)
    else socket.resume()
  }
  const closeLargest = () => {
    const [largest] = [...holders].sort((a, b) => b.bytes - a.bytes)
    if (largest === undefined) return
    drop(largest)
    breakOff(largest.current)
    largest.socket.destroy()
  }
  return {
    take: (request, response, answer) => {
      const { socket } = request
      const connection = connections.get(socket) ?? open(socket, response)
      if (response.socket !== null) {
        connection.current = response
        return answer(request, response)
      }
      const bytes = toBytes(request)
      rotation.count(socket, bytes)
      if (socket.destroyed) return
      connection.waiting.push({ request, response, answer })
      count(connection, bytes)
      socket.pause()
      watch(connection)
      if (total > maxBytes) closeLargest()
    },
    endAfterAnswers: (socket, end) => {
      const connection = connections.get(socket)
      if (connection === undefined) return end()
      const { current, waiting } = connection
      if (waiting.length === 0 && current.writableFinished) return end()
      // The invalid bytes belong to the body of the request in progress.
      if (waiting.length === 0 && !current.req.complete) return breakOff(current)
      connection.end = end
      socket.pause()
      watch(connection)
    },
    watch: rotation.watch,
  }
}
