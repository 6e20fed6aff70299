import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { originValidation, toNodeHandler } from '@modelcontextprotocol/node'
import {
  createMcpHandler,
  isLegacyRequest,
  type McpServer,
  validateHostHeader,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { toUrlHost } from '../../shared/config/networks.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { Caller } from '../admission/admission.ts'
import type { ToClient } from '../http/client-address.ts'
import { FIXED_HEADERS, type FlatHeaders, setHeaders } from '../http/headers.ts'
import { createMediaTypeChooser } from '../http/negotiation.ts'
import { onClose } from '../http/pipelining.ts'
import type { OpenApi } from '../openapi/shape.ts'
import { Problem, toProblem } from '../problem/problem.ts'
import type { Route } from '../route/define-route.ts'
import type { RequestContext } from '../route/request-context.ts'
import type { Serving } from '../serving/serve.ts'
import { MCP_METHODS, MCP_PATH } from './path.ts'
import { createMcpServer, type DataIn } from './server.ts'
import { Refused, type Reply, type Source } from './source.ts'

/** The arguments of a call have at most some thousand characters. */
const MOST_BODY_BYTES = 64 * 1024
/** The protocol and the SDK nest arguments less than ten levels deep; the SDK's validation recurses. */
const MOST_BODY_DEPTH = 32
/** The tools have no notifications, but the protocol requires an answer to a subscription. */
const MOST_SUBSCRIPTIONS = 1
/** Longer than any call of a tool may take. */
const EXCHANGE_TIMEOUT_MS = 45_000

const JSON_TYPE = 'application/json'

/** The members that every request to a server has. */
type Received = IncomingMessage & { readonly method: string; readonly url: string }

interface Options {
  readonly serving: Serving
  readonly routes: readonly Route[]
  readonly toDocument: () => OpenApi
  readonly publicUrl: string
  /**
   * The API's own address, and further host names of the service, in addition to `publicUrl` and the names of this
   * machine.
   */
  readonly hosts: readonly string[]
  readonly now: () => number
  readonly toClient: ToClient
  readonly log: Logger
}

/**
 * The call on behalf of which a tool makes requests. The requests of the tool queue and count like the client's own
 * requests.
 */
interface Asking {
  readonly client: string
  readonly requestId: string
  readonly response: ServerResponse
  /** Undefined if requests are not limited. */
  readonly caller: Caller | undefined
  /** The first request of a call was counted with the call. */
  isFirst: boolean
}

const toHeaders = (flat: FlatHeaders): Headers => {
  const headers = new Headers()
  for (let at = 0; at < flat.length; at += 2) headers.set(String(flat[at]), String(flat[at + 1]))
  return headers
}

function toRefused(problem: Problem): Refused {
  const { param, allowed = [], candidates = [], headers } = problem.particulars
  const particulars = {
    ...(param === undefined ? {} : { param }),
    ...(allowed.length > 0 ? { allowed: [...allowed] } : {}),
    ...(candidates.length > 0 ? { candidates: [...candidates] } : {}),
  }
  return new Refused({ code: problem.code, detail: problem.message, ...particulars }, headers?.['Retry-After'])
}

/**
 * Counts units for the client's limit.
 * @throws Refused when the limit is exhausted.
 */
async function charge(call: Asking, units = 1): Promise<void> {
  const { caller, response } = call
  if (units === 0 || caller === undefined) return
  const { headers, rejection } = await caller.charge(units)
  if (!response.headersSent) setHeaders(response, headers)
  if (rejection !== undefined) throw toRefused(toProblem(rejection))
}

/** Runs the requests of each client one after another. Before each request the process runs its other work. */
export function createClientQueues() {
  /** Resolves when the newest request of a client ends. */
  const ends = new Map<string, Promise<void>>()
  return async <T>(client: string, work: () => Promise<T>): Promise<T> => {
    const before = ends.get(client)
    let end = () => {}
    const own = new Promise<void>((resolve) => {
      end = resolve
    })
    ends.set(client, own)
    try {
      await before
      await yieldToEventLoop()
      return await work()
    } finally {
      end()
      if (ends.get(client) === own) ends.delete(client)
    }
  }
}

/** A source that calls this process's routes without HTTP. */
function createOwnSource({ serving, routes, toDocument, publicUrl, now }: Options, toCall: () => Asking): Source {
  const byPath = new Map(routes.map((route) => [route.path, route]))
  const inClientQueue = createClientQueues()
  const send = async (url: string, signal: AbortSignal): Promise<Reply> => {
    const route = byPath.get(url.split('?', 1)[0] ?? '')
    if (route === undefined) throw new Refused({ code: 'not_found', detail: 'No resource has this path.' })
    const call = toCall()
    return inClientQueue(call.client, async () => {
      signal.throwIfAborted()
      await charge(call, call.isFirst ? 0 : 1)
      call.isFirst = false
      const { client, requestId } = call
      const { body, headers } = await serving
        .answer(route, { url, client, requestId, charge: (units) => charge(call, units - 1) }, signal)
        .catch((error: unknown) => {
          throw error instanceof Problem ? toRefused(error) : error
        })
      return { text: body.toString(), headers: toHeaders(headers) }
    })
  }
  return { base: publicUrl, now, document: async () => toDocument(), request: send }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** Whether a value has more than `most` levels. Iterative, because recursion could overflow the stack. */
function isDeeper(value: unknown, most: number): boolean {
  let level = [value].filter(isObject)
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth === most) return true
    level = level.flatMap((one): unknown[] => Object.values(one)).filter(isObject)
  }
  return false
}

/**
 * Reads the JSON of a body.
 * @throws Problem `invalid_parameter` if it is too long, too deep or no JSON, and for a batch of calls: a call counts
 * as one request.
 */
async function readBody(request: IncomingMessage): Promise<unknown> {
  const tooLong = () => new Problem('invalid_parameter', `The body exceeds ${MOST_BODY_BYTES} bytes.`)
  // Checked before the body is read: Node closes a connection with an unread rest of a body, and the client would get
  // no answer.
  if (Number(request.headers['content-length'] ?? 0) > MOST_BODY_BYTES) throw tooLong()
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > MOST_BODY_BYTES) throw tooLong()
    chunks.push(chunk)
  }
  let body: unknown
  try {
    body = JSON.parse(Buffer.concat(chunks).toString())
  } catch (cause) {
    throw new Problem('invalid_parameter', 'The body is not JSON.', { cause })
  }
  if (Array.isArray(body)) throw new Problem('invalid_parameter', 'One call at a time: the body must not be a list.')
  if (isDeeper(body, MOST_BODY_DEPTH))
    throw new Problem('invalid_parameter', `The body is nested more than ${MOST_BODY_DEPTH} levels deep.`)
  return body
}

const toOwnHeaders = ({ requestId }: Asking) => [
  ...FIXED_HEADERS,
  ...['X-Request-Id', requestId],
  ...['Cache-Control', 'no-store'],
]

/** Allowed host names for requests from browsers. A foreign page may make any other name resolve to this machine. */
function toHostnames({ publicUrl, hosts }: Options): string[] {
  const { hostname } = new URL(publicUrl)
  return [...new Set(['localhost', '127.0.0.1', '[::1]', hostname, ...hosts.map(toUrlHost)])]
}

/** The error of the protocol's library for a foreign host, with the setting that allows it. */
function refuseHost(response: ServerResponse, reason: string): void {
  const message = `${reason}. Add the host name to the setting MCP_HOSTS of the API if it names this service.`
  response.writeHead(403, ['Content-Type', JSON_TYPE])
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32000, message }, id: null }))
}

const HOST = /^(\[[\da-f:.]+\]|[\w.-]+)(:\d{1,5})?$/i

/** Whether a client accepts JSON, the type of every answer. */
const chooseJson = createMediaTypeChooser([JSON_TYPE])

/** @throws Problem if the URL is not this path, or if the client does not accept JSON. */
function checkRequest({ method, url = '', headers }: IncomingMessage): void {
  if (method !== 'POST')
    throw new Problem(
      'method_not_allowed',
      'Assistants POST to this path by the Model Context Protocol: see /guides/assistants.',
      { allowed: MCP_METHODS.split(', '), headers: { Allow: MCP_METHODS } },
    )
  if (!url.startsWith('/'))
    throw new Problem('invalid_parameter', `The target of the request must be the path ${MCP_PATH}, not a whole URL.`)
  if (headers.host !== undefined && !HOST.test(headers.host))
    throw new Problem('invalid_parameter', 'The header Host must be a host name and, if need be, a port.')
  if (chooseJson(headers.accept) === undefined)
    throw new Problem('not_acceptable', `This path answers with ${JSON_TYPE} only: name it in Accept.`, {
      allowed: [JSON_TYPE],
    })
}

const toDataIn = ({ url = '' }: IncomingMessage): DataIn => (url.endsWith('?data=text') ? 'text' : 'both')

/**
 * Answers a request of a protocol version before 2026-07-28 as JSON. The SDK's own fallback answers with an event
 * stream only.
 */
async function answerLegacy(server: McpServer, request: Request, parsedBody: unknown): Promise<Response> {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  const disconnected = new Promise<Response>((resolve) => {
    request.signal.addEventListener('abort', () => resolve(new Response(null, { status: 499 })), { once: true })
  })
  try {
    await server.connect(transport)
    return await Promise.race([transport.handleRequest(request, { parsedBody }), disconnected])
  } finally {
    // Aborts the call of a disconnected client.
    await server.close()
  }
}

function createHandler(createServer: () => McpServer) {
  const modern = createMcpHandler(createServer, { legacy: 'reject', maxSubscriptions: MOST_SUBSCRIPTIONS })
  return toNodeHandler({
    fetch: async (request, options) =>
      (await isLegacyRequest(request, options?.parsedBody))
        ? answerLegacy(createServer(), request, options?.parsedBody)
        : modern.fetch(request, options),
  })
}

/** Handles `/mcp`: streamable HTTP of the Model Context Protocol, without state between requests. */
export type McpEndpoint = (context: RequestContext) => Promise<void>

export function createMcpEndpoint(options: Options): McpEndpoint {
  const asking = new AsyncLocalStorage<Asking>()
  const source = createOwnSource(options, () => {
    const call = asking.getStore()
    // Without a client, its requests would queue and count as another client's.
    if (call === undefined) throw new Error('a tool sent a request outside of a call')
    return call
  })
  const onFailure = (error: unknown) =>
    options.log.error({ requestId: asking.getStore()?.requestId, err: error }, 'MCP tool failed')
  const handlers = {
    both: createHandler(() => createMcpServer(source, { dataIn: 'both', onFailure })),
    text: createHandler(() => createMcpServer(source, { dataIn: 'text', onFailure })),
  }
  const names = toHostnames(options)
  const isKnownOrigin = originValidation(names)
  return async ({ request, response, requestId, caller }) => {
    checkRequest(request)
    const call = { client: options.toClient(request), requestId, response, caller, isFirst: true }
    setHeaders(response, toOwnHeaders(call))
    const named = validateHostHeader(request.headers.host, names)
    if (!named.ok) return refuseHost(response, named.message)
    if (!isKnownOrigin(request, response)) return
    const late = setTimeout(() => response.destroy(), EXCHANGE_TIMEOUT_MS)
    onClose(response, () => clearTimeout(late))
    const body = await readBody(request)
    // The SDK requires both of the protocol's media types, and then answers with JSON.
    request.headers.accept = `${JSON_TYPE}, text/event-stream`
    await asking.run(call, () => handlers[toDataIn(request)](request as Received, response, body))
  }
}
