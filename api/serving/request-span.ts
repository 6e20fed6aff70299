import type { IncomingMessage, ServerResponse } from 'node:http'
import { context, propagation, ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { recordFailure, tracer } from '../../shared/telemetry/spans.ts'
import { toProblem } from '../problem/problem.ts'

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
  if (span.isRecording()) response.once('close', () => end(span, { method, request, response }))
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
