import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { context, propagation, ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { Counter, Histogram, Registry } from 'prom-client'
import { createCounter, createGauge, createHistogram, METRICS } from '../../shared/telemetry/metric-list.ts'
import { recordFailure, tracer } from '../../shared/telemetry/spans.ts'
import type { Origin } from '../cache/cache.ts'
import { onClose } from '../http/pipelining.ts'
import { toProblem } from '../problem/problem.ts'

/** Metrics of one route, looked up once: finding a child by its labels costs more than incrementing it. */
export interface RouteMeters {
  answered(from: Origin): void
  requested(status: number, seconds: number): void
  /** A request answered from the cache that began at `startedAt` of the process clock (`performance.now`). */
  servedFromCache(status: number, startedAt: number): void
}

/** The API's metrics: requests by route and status, their durations, and the origin of answers. */
export interface ApiMetrics {
  of(route: string): RouteMeters
  /** Reports the size of a cache on each scrape, and its capacity in bytes. */
  keeps(of: string, roomBytes: number, toBytes: () => number): void
  /** Reports the number of cached points on each scrape. */
  keepsPoints(toPoints: () => number): void
}

export function createApiMetrics(registry: Registry): ApiMetrics {
  const requests = createHistogram(METRICS.apiRequest, registry)
  const answers = createCounter(METRICS.apiAnswers, registry)
  const toMeters = (route: string): RouteMeters => {
    const timers = new Map<number, Histogram.Internal<'route' | 'status'>>()
    const counters = new Map<Origin, Counter.Internal>()
    const answered = (from: Origin) => {
      const counter = counters.get(from) ?? answers.labels({ route, from })
      counters.set(from, counter)
      counter.inc()
    }
    const requested = (status: number, seconds: number) => {
      const timer = timers.get(status) ?? requests.labels({ route, status })
      timers.set(status, timer)
      timer.observe(seconds)
    }
    const servedFromCache = (status: number, startedAt: number) => {
      answered('cache')
      requested(status, (performance.now() - startedAt) / 1000)
    }
    return { answered, requested, servedFromCache }
  }
  const caches = new Map<string, () => number>()
  createGauge(METRICS.apiKept, registry, (gauge) => {
    for (const [of, toBytes] of caches) gauge.set({ of }, toBytes())
  })
  const room = createGauge(METRICS.apiRoom, registry)
  let countPoints = () => 0
  createGauge(METRICS.apiPoints, registry, (gauge) => gauge.set(countPoints()))
  const meters = new Map<string, RouteMeters>()
  return {
    of: (route) => {
      const ofRoute = meters.get(route) ?? toMeters(route)
      meters.set(route, ofRoute)
      return ofRoute
    },
    keeps: (of, roomBytes, toBytes) => {
      caches.set(of, toBytes)
      room.set({ of }, roomBytes)
    },
    keepsPoints: (toPoints) => {
      countPoints = toPoints
    },
  }
}

/** Other methods are reported as `_OTHER`, because the number of span names must stay small. */
const METHODS: ReadonlySet<string> = new Set('GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH QUERY'.split(' '))

/**
 * Handles a request in its own span, whose parent is the trace of the client's `traceparent`. Requests answered from
 * the response cache get no span: no work happens in them.
 */
export function inRequestSpan(request: IncomingMessage, response: ServerResponse, work: () => void): void {
  const method = METHODS.has(request.method ?? '') ? String(request.method) : '_OTHER'
  const parent = propagation.extract(ROOT_CONTEXT, request.headers)
  const span = tracer.startSpan(method, { kind: SpanKind.SERVER, attributes: describe(request, method) }, parent)
  if (span.isRecording()) onClose(response, () => end(span, { method, request, response }))
  context.with(trace.setSpan(parent, span), work)
}

function describe(request: IncomingMessage, method: string) {
  return {
    'http.request.method': method,
    'url.scheme': 'http',
    'url.path': toParts(request).path,
    'network.protocol.version': request.httpVersion,
  }
}

function toParts({ url = '/' }: IncomingMessage): { path: string; query: string } {
  const at = url.indexOf('?')
  return at === -1 ? { path: url, query: '' } : { path: url.slice(0, at), query: url.slice(at + 1) }
}

function end(span: Span, about: { method: string; request: IncomingMessage; response: ServerResponse }): void {
  const { method, request, response } = about
  const { statusCode } = response
  const route = 'locals' in response ? Reflect.get(Object(response.locals), 'route') : undefined
  span.setAttribute('http.response.status_code', statusCode)
  if (typeof route === 'string') {
    span.updateName(`${method} ${route}`)
    span.setAttribute('http.route', route)
    // A rejected query may contain anything, even a key for another service.
    const { query } = toParts(request)
    if (query !== '' && (statusCode < 400 || statusCode >= 500)) span.setAttribute('url.query', query)
  }
  const failure = statusCode >= 500 ? String(statusCode) : response.writableFinished ? undefined : 'broken_off'
  if (failure !== undefined) {
    span.setAttribute('error.type', failure)
    span.setStatus({ code: SpanStatusCode.ERROR })
  }
  span.end()
}

/** Records in the request's span why it failed, if the failure is the service's and not the client's. */
export function noteFailure(error: unknown): void {
  const span = trace.getActiveSpan()
  if (span?.isRecording() && toProblem(error).status >= 500) recordFailure(span, error)
}

/**
 * Returns the time when the response's headers were written, by the process clock (`performance.now`), or the current
 * time if they were not written. The time after the headers depends on how fast the client reads.
 */
export function noteHead(response: ServerResponse): () => number {
  let headersAt: number | undefined
  const writeHead = response.writeHead.bind(response) as (...head: unknown[]) => ServerResponse
  response.writeHead = (...head: unknown[]) => {
    headersAt ??= performance.now()
    return writeHead(...head)
  }
  return () => headersAt ?? performance.now()
}

const SANE_ID = /^[A-Za-z0-9._-]{1,128}$/

/** Creates request ids: the client's id if it is safe in headers and logs, else a new one. */
export function createRequestIds(): (request: IncomingMessage) => string {
  // A random id per app and a counter are as unique as a random id per request, and cost nothing.
  const app = randomUUID()
  let requests = 0
  return (request) => {
    const clientId = request.headers['x-request-id']
    if (typeof clientId === 'string' && SANE_ID.test(clientId)) return clientId
    requests++
    return `${app}-${requests}`
  }
}
