import { type Attributes, type Span, SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { recordFailure, startStep, toErrorType, within } from '../../shared/telemetry/spans.ts'
import { type Answer, type Failure, toMethod } from './attempt.ts'
import type { HttpRequest } from './request.ts'
import type { Target } from './target.ts'

export interface TracedAttempt {
  readonly provider: string
  readonly request: HttpRequest
  readonly target: Target
  /** Number of earlier attempts of the request. */
  readonly retries: number
}

/**
 * Sends a request once, in its own span if it is part of a trace. The trace context is not sent to the provider,
 * because it is internal.
 */
export async function inAttemptSpan(
  traced: TracedAttempt,
  send: () => Promise<Answer | Failure>,
): Promise<Answer | Failure> {
  const span = startStep(`${toMethod(traced.request)} ${toRoute(traced.request)}`, () => describe(traced))
  if (span === undefined) return send()
  try {
    const result = await within(span, send)
    if (result.status !== undefined) span.setAttribute('http.response.status_code', result.status)
    if ('reason' in result) noteReason(span, result)
    return result
  } catch (error) {
    recordFailure(span, error)
    throw error
  } finally {
    span.end()
  }
}

function noteReason(span: Span, { status, code, reason, cause }: Failure): void {
  span.setAttribute('error.type', status === undefined || status < 400 ? code : String(status))
  if (cause !== undefined) span.addEvent('exception', { 'exception.type': toErrorType(cause) })
  span.setStatus({ code: SpanStatusCode.ERROR, message: reason })
}

const toRoute = ({ route, path }: HttpRequest) => route ?? path

function describe({ provider, request, target, retries }: TracedAttempt) {
  const { hostname, port } = target.url
  const attributes: Attributes = {
    'dao_data.provider': provider,
    'http.request.method': toMethod(request),
    'url.template': toRoute(request),
    'url.full': toShownUrl(target),
    'server.address': hostname,
  }
  if (port !== '') attributes['server.port'] = Number(port)
  if (retries > 0) attributes['http.request.resend_count'] = retries
  return { kind: SpanKind.CLIENT, attributes }
}

/** The path of the base URL is omitted: it may contain a node's key or a bot's token. */
function toShownUrl({ url, shown }: Target): string {
  return `${url.protocol}//${url.host}/...${shown}`
}
