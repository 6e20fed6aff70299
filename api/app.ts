import type { IncomingMessage, RequestListener } from 'node:http'
import express, { type NextFunction, type Request, type Response } from 'express'
import type { Registry as MetricsRegistry } from 'prom-client'
import type { CommitLog } from '../shared/store/commit-log.ts'
import { createReadiness } from '../shared/store/readiness.ts'
import type { Logger } from '../shared/telemetry/log.ts'
import { createGauge, METRICS } from '../shared/telemetry/metric-list.ts'
import { createMemory } from './answers/memory.ts'
import { createCounts } from './coverage/counts.ts'
import { createToClient, type ToClient } from './http/client-address.ts'
import { createRequestIds, FIXED_HEADERS, type FlatHeaders, setHeaders, toPreflightHeaders } from './http/headers.ts'
import { type Admission, createGate } from './limits/gate.ts'
import { createConnect } from './live/connect.ts'
import type { McpEndpoint } from './mcp/endpoint.ts'
import { MCP_METHODS, MCP_PATH } from './mcp/path.ts'
import { toOpenApi } from './openapi/document.ts'
import type { OpenApi } from './openapi/shape.ts'
import { createDocs } from './pages/docs.ts'
import { createExplorer } from './pages/explorer.ts'
import { createPages } from './pages/pages.ts'
import { createPublished } from './pages/published.ts'
import { createStoredPoints } from './prices/gathered-points.ts'
import { Problem } from './problem/problem.ts'
import type { Route, Surroundings } from './route/define-route.ts'
import type { Exchange } from './route/exchange.ts'
import { openApiRoute } from './routes/openapi.ts'
import { routes } from './routes.ts'
import { noteHead } from './serving/head-time.ts'
import { createQueue, type QueueOptions } from './serving/queue.ts'
import type { Refused } from './serving/refused.ts'
import { type ApiMetrics, createApiMetrics } from './serving/request-metrics.ts'
import { inRequestSpan, noteFailure } from './serving/request-span.ts'
import { createServing } from './serving/serve.ts'
import type { Pace, Readers } from './serving/slow-readers.ts'
import { createSpools } from './serving/spool.ts'
import { createStreaming } from './serving/stream.ts'
import { createWholeFiles } from './serving/whole-files.ts'

/** Properties that the app creates itself. */
type Made = 'now' | 'memory' | 'storedPoints' | 'readiness' | 'counts' | 'connect'

export type AppOptions = Omit<Surroundings, Made> & {
  readonly log: Logger
  readonly metrics: MetricsRegistry
  readonly commitLog: CommitLog
  /** The clock, in Unix milliseconds. Tests may replace it; default: the system clock. */
  readonly now?: () => number
  /** Minimum reading speed of clients. Tests may shorten its interval. */
  readonly pace?: Pace
  /** Limits of the answer queue. Tests may replace them. */
  readonly queue?: Omit<QueueOptions, 'meters'>
  /** Heartbeat interval of streams. Tests may shorten it. */
  readonly heartbeatMs?: number
}

/**
 * A long answer uses one core of the database while it is written. Few run concurrently, so that short answers need not
 * wait. Clients of long answers tolerate a longer wait.
 */
const DOWNLOADS = { most: 256, patience: { usualMs: 30_000, overloadMs: 15_000 } }

/** Several pages with a hundred charts each. */
const MOST_WAITING = 512

const ALLOWED = 'GET, HEAD, OPTIONS'
const allowedAt = (path: string) => (path === MCP_PATH ? MCP_METHODS : ALLOWED)

/** Converts `/charts/{tokenId}.svg` to Express syntax. */
const toPattern = (path: string) => path.replaceAll(/\{(\w+)\}/g, ':$1')

function toExchange(request: Request, response: Response): Exchange {
  const { requestId, startedAt, caller } = response.locals as Pick<Exchange, 'requestId' | 'startedAt' | 'caller'>
  const extra = (response.locals.extra ?? []) as FlatHeaders
  return { request, response, requestId, startedAt, extra, caller }
}

function refuseMethod(request: Request, response: Response): void {
  if (request.method === 'OPTIONS') {
    const { requestId } = toExchange(request, response)
    const headers = [
      ...FIXED_HEADERS,
      'X-Request-Id',
      requestId,
      ...toPreflightHeaders(allowedAt(request.path), request.get('access-control-request-headers')),
    ]
    response.writeHead(204, headers).end()
    return
  }
  throw new Problem('method_not_allowed', `${request.method} is not allowed: the service is read-only.`, {
    allowed: ALLOWED.split(', '),
    headers: { Allow: ALLOWED },
  })
}

/**
 * Finds the route of a request if its path equals a route's path. The request then bypasses Express, which would take as long
 * as assembling one day of prices. Express handles aliases, paths with parameters and all others.
 */
function createRouteFinder(routes: readonly Route[]): (request: IncomingMessage) => Route | undefined {
  const byPath = new Map(routes.map((route) => [route.path, route]))
  return ({ method, url = '' }) => {
    if (method !== 'GET' && method !== 'HEAD') return undefined
    const end = url.indexOf('?')
    return byPath.get(end < 0 ? url : url.slice(0, end))
  }
}

/** For a target such as `http://[::1/x` Express finds no path and calls no handler. */
const noUrl = () => new Problem('invalid_parameter', 'The target of the request is no URL.')

/** Express throws a URIError for a path with malformed percent-encoding. */
function toRoutingProblem(error: unknown): unknown {
  if (!(error instanceof URIError)) return error
  return new Problem('invalid_parameter', 'The path has a malformed percent-encoding.', { cause: error })
}

function createSendStream({ config, log, readers }: AppOptions & { readonly readers: Readers }, metrics: ApiMetrics) {
  const queue = createQueue({
    ...{ ...DOWNLOADS, places: config.api.downloadsAtOnce, clock: () => performance.now() },
    meters: metrics.ofQueue('downloads'),
  })
  const disk = { maxBytes: config.api.spoolBytes / 2, log }
  return createStreaming({ readers, queue, spools: createSpools(disk), files: createWholeFiles({ ...disk, queue }) })
}

/** Creates the dependencies of the routes; `maxBytes` is the budget of the series cache. */
function createSurroundings(options: AppOptions, maxBytes: number, toClient: ToClient): Surroundings {
  const { commits, commitLog, config, db, heartbeatMs, log, metrics, now: local = Date.now, stopping } = options
  const gauge = createGauge(METRICS.apiStreams, metrics)
  return {
    ...options,
    memory: createMemory({ maxBytes, commits, db }),
    storedPoints: createStoredPoints(db, config.api.answersAtOnce),
    ...createReadiness(db, { passed: () => performance.now(), local, log }),
    counts: createCounts(commits, db),
    connect: createConnect({ commitLog, bounds: config.api.streams, toClient, gauge, heartbeatMs, stopping }),
  }
}

const toQueueOptions = ({
  api: { answersAtOnce: places },
}: AppOptions['config']): NonNullable<AppOptions['queue']> => ({
  ...{ places, perClient: Math.ceil(places / 2), perFlood: Math.ceil(places / 8) },
  ...{ most: MOST_WAITING, clock: () => performance.now() },
})

/** Components that observe the server's connections. */
interface Connections {
  readonly readers: Readers
  readonly refused: Refused
}

/** Creates the service as a request listener: the response cache comes first, Express handles the rest. */
export function createApp(options: AppOptions & Connections): RequestListener {
  // The response cache and the series cache share the budget.
  const cacheBytes = options.config.api.cacheBytes / 2
  const metrics = createApiMetrics(options.metrics)
  const toClient = createToClient(options.config.api.trustedProxies)
  const { refused: noteRefused } = metrics.ofQueue('limits')
  const gate = options.limits && createGate({ ...options.limits, toClient, refused: noteRefused })
  const surroundings = createSurroundings(options, cacheBytes, toClient)
  const queue = createQueue({
    ...(options.queue ?? toQueueOptions(options.config)),
    meters: metrics.ofQueue('answers'),
  })
  const sendStream = createSendStream(options, metrics)
  const { log, readers, refused } = options
  const connections = { sendStream, readers, refused, toClient }
  const serving = createServing(surroundings, { log, metrics, cacheBytes, queue, ...connections })
  const toRequestId = createRequestIds()
  let document: OpenApi | undefined
  const toDocument = () => {
    document ??= toOpenApi(routes)
    return document
  }
  const all: readonly Route[] = [...routes, openApiRoute(toDocument)]

  const findRoute = createRouteFinder(all)
  const fail = (exchange: Exchange, failure: unknown) => {
    noteFailure(failure)
    serving.fail(exchange, failure)
  }

  const app = express()
  app.disable('x-powered-by').disable('etag').set('query parser', false).set('case sensitive routing', true)
  let mcp: Promise<McpEndpoint> | undefined
  // Loaded on first use: loading takes a quarter of the start-up time, and most processes never need it.
  const loadMcp = async () => {
    const { createMcpEndpoint } = await import('./mcp/endpoint.ts')
    return createMcpEndpoint({
      ...{ serving, routes: all, toDocument, toClient, log: options.log, now: surroundings.now },
      ...{ publicUrl: options.config.api.publicUrl, hosts: [options.config.api.host, ...options.config.api.mcpHosts] },
    })
  }
  const answerMcp = async (exchange: Exchange) => {
    mcp ??= loadMcp().catch((error: unknown) => {
      // A later attempt may succeed, for example after a lack of file descriptors.
      mcp = undefined
      throw error
    })
    await (await mcp)(exchange)
  }
  app.use((request: Request, response: Response, next: NextFunction) => {
    if (request.path === MCP_PATH && request.method !== 'OPTIONS') {
      response.locals.route = MCP_PATH
      return answerMcp(toExchange(request, response))
    }
    if (request.method === 'GET' || request.method === 'HEAD') next()
    else refuseMethod(request, response)
  })
  for (const route of all) {
    app.get([route.path, ...route.aliases].map(toPattern), async (request: Request, response: Response) => {
      response.locals.route = route.path
      const inPlace = route.path.includes('{') || request.path === route.path
      response.locals.extra = inPlace ? [] : ['Link', `<${route.path}>; rel="canonical"`]
      await serving.serve(route, toExchange(request, response), request.params)
    })
  }
  app.use(createPublished(options.config.api.publishedFolder))
  app.use(createDocs())
  app.use(createExplorer(options.config))
  app.use(createPages({ toDocument, publicUrl: options.config.api.publicUrl }))
  app.use(() => {
    throw new Problem('not_found', 'There is nothing at this path.')
  })
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    fail(toExchange(request, response), toRoutingProblem(error))
  })

  const begin = (exchange: Exchange) => {
    if (serving.serveKept(exchange)) return
    const { request, response } = exchange
    const route = findRoute(request)
    const { requestId, startedAt, caller } = exchange
    const locals = { requestId, startedAt, caller, route: route?.path }
    Object.assign(response, { locals })
    setHeaders(response, exchange.limit ?? [])
    const toBegun = noteHead(response)
    response.once('close', () => {
      // The duration of an endless response depends on the client, not on the service.
      if (route?.isEndless && response.statusCode === 200) return
      metrics.of(locals.route ?? 'none').requested(response.statusCode, (toBegun() - startedAt) / 1000)
    })
    inRequestSpan(request, response, () => {
      if (route === undefined)
        app(request as Request, response as Response, (failure) => fail(exchange, failure ?? noUrl()))
      else serving.serve(route, exchange, {}).catch((failure: unknown) => fail(exchange, failure))
    })
  }
  const admit = (exchange: Exchange, { caller, headers, refusal }: Admission) => {
    const { response } = exchange
    if (response.destroyed) return
    exchange.caller = caller
    exchange.limit = headers
    if (refusal === undefined) return begin(exchange)
    setHeaders(response, headers)
    fail(exchange, refusal)
  }
  return (request, response) => {
    const exchange: Exchange = {
      request,
      response,
      requestId: toRequestId(request),
      startedAt: performance.now(),
      extra: [],
    }
    if (gate === undefined) begin(exchange)
    else gate.admit(request, (admission) => admit(exchange, admission))
  }
}
