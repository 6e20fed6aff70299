import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { breakOff } from './break-off.ts'

/**
 * Most requests that wait behind another of their connection. Clients that send ahead at all send a handful; each that
 * waits holds its head, which may have a quarter of a megabyte.
 */
const MOST_WAITING = 32

type Answer = (request: IncomingMessage, response: ServerResponse) => void

interface Waiting {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly answer: Answer
}

interface Connection {
  /** Earlier ones have ended. */
  current: ServerResponse
  readonly waiting: Waiting[]
}

/** The requests of each connection, one after the other. */
export interface Pipelining {
  /**
   * Has a request answered once the responses before it have ended; never where the connection ends before. A connection
   * that sends too many ahead is broken off.
   */
  take(request: IncomingMessage, response: ServerResponse, answer: Answer): void
  /** What a connection is busy with, as long as anything that is written there would be read as a part of an answer. */
  unfinishedOf(socket: Duplex): ServerResponse | undefined
}

/**
 * Node hands over every request that a connection brings, whether or not those before it were answered. The response of
 * one that came too soon has no socket: it would hold all of its bytes, and nobody tells it that the connection has
 * ended. So it is not begun before it has one.
 */
export function createPipelining(): Pipelining {
  const connections = new WeakMap<Duplex, Connection>()
  const next = (connection: Connection) => {
    const one = connection.waiting.shift()
    if (one === undefined) return
    const { request, response, answer } = one
    // The connection has ended, or is ending with a refusal.
    if (response.socket === null || response.destroyed || !request.socket.writable) {
      connection.waiting.length = 0
      return
    }
    connection.current = response
    answer(request, response)
    // After those who answer it, so that what it held is free by then.
    if (connection.waiting.length > 0) response.once('close', () => next(connection))
  }
  return {
    take: (request, response, answer) => {
      const { socket } = request
      const connection = connections.get(socket)
      if (response.socket !== null) {
        if (connection === undefined) connections.set(socket, { current: response, waiting: [] })
        else connection.current = response
        return answer(request, response)
      }
      if (connection === undefined || socket.destroyed) return
      const { current, waiting } = connection
      if (waiting.length === MOST_WAITING) {
        waiting.length = 0
        return breakOff(current)
      }
      if (waiting.push({ request, response, answer }) === 1) current.once('close', () => next(connection))
    },
    unfinishedOf: (socket) => {
      const connection = connections.get(socket)
      if (connection === undefined) return undefined
      const { current, waiting } = connection
      return waiting.length > 0 || !current.writableFinished ? current : undefined
    },
  }
}
