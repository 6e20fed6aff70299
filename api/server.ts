import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { type AppOptions, createApp } from './app.ts'
import { FIXED_HEADERS } from './http/headers.ts'
import { Problem, toProblemBody } from './problem/problem.ts'
import { breakOff } from './serving/break-off.ts'
import { createPipelining } from './serving/pipelining.ts'
import { createRefused } from './serving/refused.ts'
import { createReaders } from './serving/slow-readers.ts'

/** A hundred names of 200 characters, each up to nine bytes long as percent-encoded UTF-8 (contract section 2). */
const MAX_HEADER_BYTES = 256 * 1024

/**
 * How long a connection is kept for a next request: longer than proxies keep theirs, which is a minute mostly. The side
 * that sends requests has to be the one that closes, or a request meets a connection that is being closed.
 */
const KEEP_ALIVE_MS = 75_000

/** What is wrong with bytes that Node's parser gave up on; its codes are documented in node:errors. */
function toRequestProblem(code: string | undefined): Problem {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new Problem('invalid_parameter', `The request line and headers exceed ${MAX_HEADER_BYTES} bytes.`)
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new Problem('invalid_parameter', 'The request did not arrive in time.')
  }
  return new Problem('invalid_parameter', 'The bytes received are not an HTTP request.')
}

/** Whether a header stands more than once in a head; Node tells of the first one only. */
function isTwice(name: string, rawHeaders: readonly string[]): boolean {
  let found = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const header = rawHeaders[at]
    if (header?.length === name.length && header.toLowerCase() === name) found += 1
  }
  return found > 1
}

/** What is wrong with the Host of a request: Node would refuse some without a word, and take others (RFC 9112, section 3.2). */
function toHeadProblem({ httpVersion, headers, rawHeaders }: IncomingMessage): Problem | undefined {
  if (headers.host === undefined) {
    if (httpVersion !== '1.1') return undefined
    return new Problem('invalid_parameter', 'The request has no Host header, which HTTP/1.1 asks for.')
  }
  if (!isTwice('host', rawHeaders)) return undefined
  return new Problem('invalid_parameter', 'The request has more than one Host header.')
}

/** A whole response, headers and problem, for a connection without a request that could be answered. */
function toRawResponse(problem: Problem, publicUrl: string): string {
  const requestId = randomUUID()
  const body = JSON.stringify(toProblemBody(problem, { publicUrl, instance: '/', requestId }))
  const headers = [
    ...FIXED_HEADERS,
    ...['X-Request-Id', requestId],
    ...['Content-Type', 'application/problem+json; charset=utf-8'],
    ...['Content-Length', String(Buffer.byteLength(body))],
    ...['Cache-Control', 'no-store'],
    ...['Connection', 'close'],
  ]
  const lines = headers.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${headers[index + 1]}\r\n`] : []))
  return `HTTP/1.1 ${problem.status} Bad Request\r\n${lines.join('')}\r\n${body}`
}

/** The service as a server: bytes that are no request are answered like every other failure (contract section 5). */
export function createApiServer(options: AppOptions): Server {
  const readers = createReaders(options.log, options.pace)
  const refused = createRefused()
  const app = createApp({ ...options, readers, refused })
  const pipelining = createPipelining()
  const refuse = (socket: Duplex, problem: Problem) => {
    socket.end(toRawResponse(problem, options.config.api.publicUrl))
  }
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const problem = toHeadProblem(request)
    if (problem !== undefined) return refuse(request.socket, problem)
    // Whoever keeps its connection learns with the answer that the next request belongs elsewhere.
    if (options.stopping?.aborted) response.shouldKeepAlive = false
    app(request, response)
  }
  const refuseExpectation = ({ socket }: IncomingMessage) =>
    refuse(socket, new Problem('invalid_parameter', 'Expect takes 100-continue and nothing else here.'))
  const limits = { maxHeaderSize: MAX_HEADER_BYTES, requireHostHeader: false, keepAliveTimeout: KEEP_ALIVE_MS }
  const server = createServer(limits, (request, response) => pipelining.take(request, response, answer))
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    pipelining.take(request, response, refuseExpectation)
  })
  readers.watch(server)
  refused.watch(server)
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
    const response = pipelining.unfinishedOf(socket)
    // Anything that is written now would be read as a part of the answer that is under way, or as the next one's.
    if (response === undefined) refuse(socket, toRequestProblem(error.code))
    else breakOff(response)
  })
  return server
}
