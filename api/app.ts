import type { IncomingMessage, RequestListener } from 'node:http'
import express, { type NextFunction, type Request, type Response } from 'express'
import { type ChangeStream, createReadiness } from '../shared/store/store.ts'
import { createCounter, createGauge, METRICS } from '../shared/telemetry/metric-list.ts'
import type { Admission, AdmissionOptions, RateDecision } from './admission/admission.ts'
import { type Cache, createCaches } from './cache/cache.ts'
import { createCounts } from './coverage/counts.ts'
import { FIXED_HEADERS, type FlatHeaders, setHeaders, toPreflightHeaders } from './http/headers.ts'
import { onClose } from './http/pipelining.ts'
import { createConnect } from './live/connect.ts'
import type { McpEndpoint } from './mcp/endpoint.ts'
import { MCP_METHODS, MCP_PATH } from './mcp/path.ts'
import { toOpenApi } from './openapi/document.ts'
import type { OpenApi } from './openapi/shape.ts'
import { toOpenApi32 } from './openapi/streams.ts'
import { createOembed } from './pages/cards.ts'
import { createDocs } from './pages/docs.ts'
import { createExplorer } from './pages/explorer.ts'
import { createLogos } from './pages/logos.ts'
import { createPages } from './pages/pages.ts'
import { createPictures } from './pages/pictures.ts'
import { createPublished } from './pages/published.ts'
import { withoutCacheBreaker } from './parameters/parse.ts'
import { createStoredPoints } from './prices/points.ts'
import { Problem } from './problem/problem.ts'
import type { AppContext, Route } from './route/define-route.ts'
import type { RequestContext } from './route/request-context.ts'
import { openApiRoute } from './routes/openapi.ts'
import { routes } from './routes.ts'
import { createAnswerFiles } from './serving/answer-files.ts'
import { type Compression, createCompression } from './serving/compression.ts'
import { createFailures } from './serving/failures.ts'
import { createApiMetrics, createRequestIds, inRequestSpan, noteFailure, noteHead } from './serving/observe.ts'
import type { LongAnswer } from './serving/respond.ts'
import { type CachedAnswer, createServing } from './serving/serve.ts'
import { createSpools } from './serving/spool.ts'
import { createStreaming } from './serving/stream.ts'
import { startWarm, type WarmStartOptions } from './serving/warm-start.ts'
import { ClientDisconnected } from './single-flight/single-flight.ts'

/** Properties that the app creates itself. */
type OwnProperty = 'now' | 'cache' | 'storedPoints' | 'readiness' | 'counts' | 'connect'

export type AppOptions = Omit<AppContext, OwnProperty> &
  AdmissionOptions & {
    readonly changeStream: ChangeStream
    /** The clock, in Unix milliseconds. Tests may replace it; default: the system clock. */
    readonly now?: () => number
    /** Heartbeat interval of streams. Tests may shorten it. */
    readonly heartbeatMs?: number
    /** Fills the caches after the start. Default: they begin empty. */
    readonly warmStart?: WarmStartOptions
  }

type Options = AppOptions & { readonly admission: Admission }

/** The client of the requests that fill the caches after the start. */
const WARM_START = 'warm start'
/** A larger share of the series cache would evict what the first of these requests cached. */
const MOST_WARM_SHARE = 0.9

const ALLOWED = 'GET, HEAD, OPTIONS'
/** Like Express, which ignores a slash at the end of a route's path. */
const isMcp = (path: string) => path === MCP_PATH || path === `${MCP_PATH}/`
const allowedAt = (path: string) => (isMcp(path) ? MCP_METHODS : ALLOWED)

/** Converts `/charts/{tokenId}.svg` to Express syntax. */
const toPattern = (path: string) => path.replaceAll(/\{(\w+)\}/g, ':$1')

function createRequestContext(request: Request, response: Response): RequestContext {
  const { requestId, startedAt, caller } = response.locals as Pick<RequestContext, 'requestId' | 'startedAt' | 'caller'>
  const extra = (response.locals.extra ?? []) as FlatHeaders
  return { request, response, requestId, startedAt, extra, caller }
}

function refuseMethod(request: Request, response: Response): void {
  if (request.method === 'OPTIONS') {
    const { requestId } = createRequestContext(request, response)
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
function createRouteFinder(
  routes: readonly Route[],
): (request: Pick<IncomingMessage, 'method' | 'url'>) => Route | undefined {
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

/** Long answers, files of ranges and evicted values share the temporary disk. */
const toDisk = ({ config, log }: Pick<Options, 'config' | 'log'>) => ({ maxBytes: config.api.spoolBytes / 3, log })

/** Creates the sending of long answers, and the files that they share with large assets. */
function createSendStream(options: Options, compression: Compression) {
  const { admission } = options
  const disk = toDisk(options)
  const files = createAnswerFiles({ ...disk, queue: admission.downloads })
  return { files, sendStream: createStreaming({ admission, compression, spools: createSpools(disk), files }) }
}

/** Creates the dependencies of the routes. */
function createAppContext(options: Options, cache: Cache): AppContext {
  const { admission, changeFeed, changeStream, config, db, heartbeatMs, log, metrics, stopping } = options
  const { now: local = Date.now } = options
  const { clientKeyOf: toClient } = admission
  const gauge = createGauge(METRICS.apiStreams, metrics)
  return {
    ...options,
    cache,
    storedPoints: createStoredPoints(db, config.api.maxAnswers),
    ...createReadiness(db, { passed: () => performance.now(), local, log }),
    counts: createCounts(changeFeed, db),
    connect: createConnect({ changeStream, bounds: config.api.streams, toClient, gauge, heartbeatMs, stopping }),
  }
}

/** Creates the service as a request listener: the response cache comes first, Express handles the rest. */
export function createApp(options: Options): RequestListener {
  const { cacheBytes } = options.config.api
  const metrics = createApiMetrics(options.metrics)
  const { admission, log, registry } = options
  const { clientKeyOf: toClient, rateLimiter } = admission
  const compression = createCompression(admission)
  const { files, sendStream } = createSendStream(options, compression)
  const failures = createFailures(log, options.config.api.publicUrl)
  const reads = createCounter(METRICS.apiChunkReads, options.metrics)
  const { cache, responses } = createCaches<CachedAnswer, LongAnswer>({
    ...{ changeFeed: options.changeFeed, db: options.db, now: options.now ?? Date.now },
    ...{ maxBytes: cacheBytes, queue: admission.answers, registryVersion: () => registry.version },
    count: (result, values) => reads.inc({ result }, values),
    onRenewalFailed: failures.noteRenewal,
    spill: toDisk(options),
  })
  const appContext = createAppContext(options, cache)
  const serving = createServing(appContext, { responses, failures, metrics, admission, compression, sendStream })
  const toRequestId = createRequestIds()
  let document: OpenApi | undefined
  const toDocument = () => {
    document ??= toOpenApi(routes)
    return document
  }
  const all: readonly Route[] = [
    ...routes,
    openApiRoute('3.1', toDocument),
    openApiRoute('3.2', () => toOpenApi32(toDocument(), routes)),
  ]

  const findRoute = createRouteFinder(all)
  const { warmStart, stopping } = options
  if (warmStart !== undefined && stopping !== undefined && cacheBytes > 0) {
    const { changeFeed, now } = appContext
    startWarm({
      ...{ ...warmStart, stopping, log, now, listRecent: serving.listRecent },
      answer: async (url, signal) => {
        const route = findRoute({ method: 'GET', url })
        const request = { url, client: WARM_START, requestId: WARM_START }
        if (route !== undefined) await serving.answer(route, request, signal)
      },
      canCache: () =>
        all.every(({ datasets: [main] }) => main === undefined || changeFeed.version(main.name) !== undefined),
      isFull: () => cache.bytes > MOST_WARM_SHARE * cache.maxBytes,
    })
  }
  const fail = (context: RequestContext, failure: unknown) => {
    if (failure instanceof ClientDisconnected) return
    noteFailure(failure)
    failures.respond(context, failure)
  }

  const app = express()
  app.disable('x-powered-by').disable('etag').set('query parser', false).set('case sensitive routing', true)
  let mcp: Promise<McpEndpoint> | undefined
  // Loaded on first use: loading takes a quarter of the start-up time, and most processes never need it.
  const loadMcp = async () => {
    const { createMcpEndpoint } = await import('./mcp/endpoint.ts')
    return createMcpEndpoint({
      ...{ serving, routes: all, toDocument, toClient, log: options.log, now: appContext.now },
      ...{ publicUrl: options.config.api.publicUrl, hosts: [options.config.api.host, ...options.config.api.mcpHosts] },
    })
  }
  const answerMcp = async (context: RequestContext) => {
    mcp ??= loadMcp().catch((error: unknown) => {
      // A later attempt may succeed, for example after a lack of file descriptors.
      mcp = undefined
      throw error
    })
    await (await mcp)(context)
  }
  app.use((request: Request, response: Response, next: NextFunction) => {
    if (isMcp(request.path) && request.method !== 'OPTIONS') {
      response.locals.route = MCP_PATH
      return answerMcp(createRequestContext(request, response))
    }
    if (request.method === 'GET' || request.method === 'HEAD') next()
    else refuseMethod(request, response)
  })
  for (const route of all) {
    app.get([route.path, ...route.aliases].map(toPattern), async (request: Request, response: Response) => {
      response.locals.route = route.path
      const inPlace = route.path.includes('{') || request.path === route.path
      response.locals.extra = inPlace ? [] : ['Link', `<${route.path}>; rel="canonical"`]
      await serving.serve(route, createRequestContext(request, response), request.params)
    })
  }
  app.use(createPublished(options.config.api.publishedFolder, admission))
  app.use(createDocs(compression))
  app.use(createOembed(options))
  app.use(createPictures(appContext, { serving, admission, compression }))
  app.use(createPages({ toDocument, config: options.config, registry: options.registry, compression }))
  const logos = createLogos(options, { compression, log })
  app.use(logos.handler)
  app.use(createExplorer({ ...options, ...admission, files, compression, logos: logos.version }))
  app.use(() => {
    throw new Problem('not_found', 'No resource has this path.')
  })
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    fail(createRequestContext(request, response), toRoutingProblem(error))
  })

  const begin = (context: RequestContext) => {
    if (!serving.serveCached(context)) admission.turns.take(toClient(context.request), () => serveUncached(context))
  }
  const serveUncached = (context: RequestContext) => {
    if (context.response.destroyed) return
    const { request, response } = context
    const route = findRoute(request)
    const { requestId, startedAt, caller } = context
    const locals = { requestId, startedAt, caller, route: route?.path }
    Object.assign(response, { locals })
    setHeaders(response, context.limit ?? [])
    const headTime = noteHead(response)
    onClose(response, () => {
      // The duration of an endless response depends on the client, not on the service.
      if (route?.isEndless && response.statusCode === 200) return
      metrics.of(locals.route ?? 'none').requested(response.statusCode, (headTime() - startedAt) / 1000)
    })
    inRequestSpan(request, response, () => {
      if (route === undefined)
        app(request as Request, response as Response, (failure) => fail(context, failure ?? noUrl()))
      else serving.serve(route, context, {}).catch((failure: unknown) => fail(context, failure))
    })
  }
  const proceed = (context: RequestContext, { caller, headers, rejection }: RateDecision) => {
    const { response } = context
    if (response.destroyed) return
    context.caller = caller
    context.limit = headers
    if (rejection === undefined) return begin(context)
    setHeaders(response, headers)
    fail(context, rejection)
  }
  return (request, response) => {
    request.url = withoutCacheBreaker(request.url ?? '')
    const context: RequestContext = {
      request,
      response,
      requestId: toRequestId(request),
      startedAt: performance.now(),
      extra: [],
    }
    if (rateLimiter === undefined) begin(context)
    else rateLimiter(request, (decision) => proceed(context, decision))
  }
}
