import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage } from 'node:http'
import { hostHeaderValidation, originValidation, toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler } from '@modelcontextprotocol/server'
import { toUrlHost } from '../../shared/config/networks.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { ToClient } from '../http/client-address.ts'
import { FIXED_HEADERS, type FlatHeaders, setHeaders } from '../http/headers.ts'
import type { OpenApi } from '../openapi/shape.ts'
import { Problem } from '../problem/problem.ts'
import type { Route } from '../route/define-route.ts'
import type { Exchange } from '../route/exchange.ts'
import type { Serving } from '../serving/serve.ts'
import { MCP_METHODS, MCP_PATH } from './path.ts'
import { createMcpServer, type DataIn } from './server.ts'
import { Refused, type Reply, type Source } from './source.ts'

/** The longest question of a tool is some thousand characters. */
const MOST_BODY_BYTES = 64 * 1024
/** Nothing changes that a client could subscribe to, but protocol and tests want to be told so, not refused. */
const MOST_SUBSCRIPTIONS = 1
/** Longer than any call of a tool may take. */
const EXCHANGE_TIMEOUT_MS = 45_000

/** What a server receives has these. */
type Received = IncomingMessage & { readonly method: string; readonly url: string }

interface Options {
  readonly serving: Serving
  readonly routes: readonly Route[]
  readonly toDocument: () => OpenApi
  readonly publicUrl: string
  /** The API's own address, and names by which it may be asked beside `publicUrl` and those of this machine. */
  readonly hosts: readonly string[]
  readonly now: () => number
  readonly toClient: ToClient
  readonly log: Logger
}

/** Who asks, and by which request: the answers that its tools need stand in line behind its others. */
interface Asking {
  readonly client: string
  readonly requestId: string
}

const toHeaders = (flat: FlatHeaders): Headers => {
  const headers = new Headers()
  for (let at = 0; at < flat.length; at += 2) headers.set(String(flat[at]), String(flat[at + 1]))
  return headers
}

/** This process's own routes, asked without a request. */
function createOwnSource({ serving, routes, toDocument, publicUrl, now }: Options, asking: () => Asking): Source {
  const byPath = new Map(routes.map((route) => [route.path, route]))
  const ask = async (url: string, signal: AbortSignal): Promise<Reply> => {
    const route = byPath.get(url.split('?', 1)[0] ?? '')
    if (route === undefined) throw new Refused({ code: 'not_found', detail: 'There is nothing at this path.' })
    try {
      const { body, headers } = await serving.answer(route, { url, ...asking() }, signal)
      return { text: body.toString(), headers: toHeaders(headers) }
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      const { allowed = [], candidates = [], headers } = error.particulars
      const told = {
        ...(allowed.length > 0 ? { allowed: [...allowed] } : {}),
        ...(candidates.length > 0 ? { candidates: [...candidates] } : {}),
      }
      throw new Refused({ code: error.code, detail: error.message, ...told }, headers?.['Retry-After'])
    }
  }
  return { base: publicUrl, now, document: async () => toDocument(), ask }
}

/**
 * The JSON of a body.
 * @throws Problem `invalid_parameter` for one that is too long, none, or several calls at once: a call is a request, and
 *   counts as one.
 */
async function readBody(request: IncomingMessage): Promise<unknown> {
  const tooLong = () => new Problem('invalid_parameter', `The body exceeds ${MOST_BODY_BYTES} bytes.`)
  // Before any of it is read: a connection whose body is left behind halfway is closed, and nobody is told why.
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
  return body
}

const toOwnHeaders = ({ requestId }: Asking) => [
  ...FIXED_HEADERS,
  ...['X-Request-Id', requestId],
  ...['Cache-Control', 'no-store'],
]

/** Names by which a browser may ask: any other may be a foreign page's, whose name was made to lead here. */
function toHostnames({ publicUrl, hosts }: Options): string[] {
  const { hostname } = new URL(publicUrl)
  return [...new Set(['localhost', '127.0.0.1', '[::1]', hostname, ...hosts.map(toUrlHost)])]
}

const toDataIn = ({ url = '' }: IncomingMessage): DataIn => (url === `${MCP_PATH}?data=text` ? 'text' : 'structured')

/** What answers `/mcp`: streamable HTTP of the Model Context Protocol, nothing of it kept between two requests. */
export type McpEndpoint = (exchange: Exchange) => Promise<void>

export function createMcpEndpoint(options: Options): McpEndpoint {
  const asking = new AsyncLocalStorage<Asking>()
  const source = createOwnSource(options, () => {
    const who = asking.getStore()
    // Without a client its answers would stand in line as somebody else's.
    if (who === undefined) throw new Error('a tool asks outside of a request')
    return who
  })
  const onFailure = (error: unknown) => options.log.error({ ...asking.getStore(), err: error }, 'a tool failed')
  const handlers = (['structured', 'text'] as const).map((dataIn) => {
    const handler = createMcpHandler(() => createMcpServer(source, { dataIn, onFailure }), {
      maxSubscriptions: MOST_SUBSCRIPTIONS,
    })
    return [dataIn, toNodeHandler(handler)] as const
  })
  const byDataIn = new Map(handlers)
  const names = toHostnames(options)
  const checks = [hostHeaderValidation(names), originValidation(names)]
  return async ({ request, response, requestId }) => {
    if (request.method !== 'POST') {
      const detail = 'Assistants POST to this path by the Model Context Protocol: see /guides/assistants.'
      throw new Problem('method_not_allowed', detail, {
        allowed: MCP_METHODS.split(', '),
        headers: { Allow: MCP_METHODS },
      })
    }
    const who = { client: options.toClient(request), requestId }
    setHeaders(response, toOwnHeaders(who))
    if (!checks.every((check) => check(request, response))) return
    const late = setTimeout(() => response.destroy(), EXCHANGE_TIMEOUT_MS)
    response.once('close', () => clearTimeout(late))
    const body = await readBody(request)
    await asking.run(who, async () => byDataIn.get(toDataIn(request))?.(request as Received, response, body))
  }
}
