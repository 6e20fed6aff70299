import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { getHeapStatistics } from 'node:v8'
import { createAdmission } from './admission/admission.ts'
import { type AppOptions, createApp } from './app.ts'
import { createIsTrusted, toNetwork } from './http/client-address.ts'
import { createPipelining } from './http/pipelining.ts'
import { Problem, toProblemBody } from './problem/problem.ts'
import { createRejectionLog, toProblemHeaders } from './serving/failures.ts'

/**
 * Maximum size of the request line and all headers. A hundred ids are 3 kB, a hundred names of 200 ASCII characters 21
 * kB; nginx accepts 32 kB by default.
 */
const MAX_HEADER_BYTES = 32 * 1024
/** From the connection, or from the first byte of a request, to the end of its headers. */
const HEADERS_TIMEOUT_MS = 10_000
/** From the same start to the end of the body. */
const REQUEST_TIMEOUT_MS = 30_000
/** Interval at which these timeouts are checked. */
const CHECK_MS = 1_000

/**
 * Keep-alive time of an idle connection: longer than that of most proxies, which is one minute. The client side must
 * close first, or a request may arrive on a closing connection.
 */
const KEEP_ALIVE_MS = 75_000

/**
 * File descriptors for other purposes than client connections: up to 256 complete answers and 256 downloads on the
 * disk, connections to ClickHouse and Redis, logs and modules.
 */
const RESERVED_FILES = 640
/** Memory that a connection may use before its request is answered: the headers, as bytes and as text. */
const CONNECTION_BYTES = 64 * 1024

/** Number of connections that fit into this process's limit of open files (`ulimit -n`) and into its heap. */
function toMaxConnections(): number {
  // Without it a report resolves the names of all interfaces. The types of Node 20 do not contain it.
  Object.assign(process.report, { excludeNetwork: true })
  const report = process.report.getReport() as { userLimits?: { open_files?: { soft: number | 'unlimited' } } }
  const files = Number(report.userLimits?.open_files?.soft)
  const byHeap = Math.floor(getHeapStatistics().heap_size_limit / CONNECTION_BYTES)
  // NaN if there is no limit.
  return Number.isNaN(files) ? byHeap : Math.min(byHeap, files - Math.min(RESERVED_FILES, Math.floor(files / 2)))
}

/** The problem for bytes that Node's parser rejected; its codes are documented in node:errors. */
function toRequestProblem(code: string | undefined): Problem {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new Problem('invalid_parameter', `The request line and headers exceed ${MAX_HEADER_BYTES} bytes.`)
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new Problem('invalid_parameter', 'The request did not arrive in time.')
  }
  return new Problem('invalid_parameter', 'The bytes received are not an HTTP request.')
}

/** Whether a header occurs more than once; Node reports only the first one. */
function isTwice(name: string, rawHeaders: readonly string[]): boolean {
  let found = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const header = rawHeaders[at]
    if (header?.length === name.length && header.toLowerCase() === name) found += 1
  }
  return found > 1
}

/** `uri-host [":" port]` of RFC 9110, section 7.2. */
const HOST = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/i

/**
 * The problem with a request's Host header. Node would reject some silently, and accept others (RFC 9112, section 3.2).
 */
function toHeadProblem({ httpVersion, headers, rawHeaders }: IncomingMessage): Problem | undefined {
  const { host } = headers
  if (host === undefined) {
    if (httpVersion !== '1.1') return undefined
    return new Problem('invalid_parameter', 'The request has no Host header, which HTTP/1.1 requires.')
  }
  if (!HOST.test(host)) {
    const shown = JSON.stringify(host.slice(0, 60))
    return new Problem(
      'invalid_parameter',
      `The Host header ${shown} is not a name or an address with an optional port.`,
    )
  }
  if (!isTwice('host', rawHeaders)) return undefined
  return new Problem('invalid_parameter', 'The request has more than one Host header.')
}

/** A complete response, headers and problem, for a connection without a valid request. */
function toRawResponse(problem: Problem, publicUrl: string): string {
  const requestId = randomUUID()
  const body = JSON.stringify(toProblemBody(problem, { publicUrl, instance: '/', requestId }))
  const headers = [...toProblemHeaders(problem, requestId, body), 'Connection', 'close']
  const lines = headers.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${headers[index + 1]}\r\n`] : []))
  return `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join('')}\r\n${body}`
}

/** Limits the open connections per address, except for proxies, which serve many clients. */
function limitConnections(
  server: Server,
  { perAddress, trusted }: { perAddress: number; trusted: readonly string[] },
  refuse: (socket: Socket) => void,
): void {
  const isTrusted = createIsTrusted(trusted)
  const open = new Map<string, number>()
  server.on('connection', (socket: Socket) => {
    const { remoteAddress } = socket
    // The client has already disconnected.
    if (remoteAddress === undefined || isTrusted(remoteAddress)) return
    const client = toNetwork(remoteAddress)
    const count = open.get(client) ?? 0
    if (count >= perAddress) return refuse(socket)
    open.set(client, count + 1)
    socket.once('close', () => {
      const remaining = (open.get(client) ?? 1) - 1
      if (remaining > 0) open.set(client, remaining)
      else open.delete(client)
    })
  })
}

/**
 * The service as a server: bytes that are no request get a problem response like every other failure (docs/contract.md,
 * section 5).
 */
export function createApiServer(options: AppOptions & { readonly maxConnections?: number }): Server {
  const { config, log, stopping, maxConnections = toMaxConnections() } = options
  const { publicUrl, connectionsPerAddress: perAddress, trustedProxies: trusted } = config.api
  const admission = createAdmission(options)
  const app = createApp({ ...options, admission })
  const pipelining = createPipelining()
  const refuse = (socket: Duplex, problem: Problem) => socket.end(toRawResponse(problem, publicUrl))
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const problem = toHeadProblem(request)
    if (problem !== undefined) return void refuse(request.socket, problem)
    // `Connection: close` makes the client send its next request to another process.
    if (stopping?.aborted) response.shouldKeepAlive = false
    app(request, response)
  }
  const refuseExpectation = ({ socket }: IncomingMessage) =>
    void refuse(socket, new Problem('invalid_parameter', 'The Expect header supports only 100-continue.'))
  const limits = {
    ...{ maxHeaderSize: MAX_HEADER_BYTES, requireHostHeader: false, keepAliveTimeout: KEEP_ALIVE_MS },
    ...{
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_MS,
    },
  }
  const server = createServer(limits, (request, response) => pipelining.take(request, response, answer))
  server.maxConnections = maxConnections
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    pipelining.take(request, response, refuseExpectation)
  })
  const rejections = createRejectionLog(log)
  server.on('drop', () => rejections.note({ maxConnections }, 'all connections are in use'))
  limitConnections(server, { perAddress, trusted }, (socket) => {
    rejections.note({ perAddress }, 'an address has too many connections')
    const detail = `There are ${perAddress} open connections of your address already: close one of them.`
    const problem = new Problem('rate_limited', detail, { headers: { 'Retry-After': '10' } })
    // Destroys the socket after the response, because the client may never close its side.
    refuse(socket, problem).once('finish', () => socket.destroy())
  })
  admission.watch(server)
  pipelining.watch(server)
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
    pipelining.endAfterAnswers(socket, () => refuse(socket, toRequestProblem(error.code)))
  })
  return server
}
