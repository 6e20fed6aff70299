import { type Attributes, type Span, SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { toReason } from '../../shared/errors.ts'
import type { Fetch } from '../../shared/proxied-fetch.ts'
import { recordFailure, startStep, toErrorType, within } from '../../shared/telemetry/spans.ts'
import type { ErrorAnswer, HttpRequest, HttpSettings, Target } from './types.ts'

/** A success: the complete body of a 2xx response, or the statement that nothing exists. */
export interface Answer {
  readonly status: number
  readonly remainingQuota: number | undefined
  readonly isAbsent: boolean
  readonly contentType: string | null
  readonly body: string
}

/** An unsuccessful request and its meaning for retries. */
export interface Failure {
  readonly status: number | undefined
  /** The beginning of the response body. */
  readonly said: { readonly contentType: string | null; readonly body: string } | undefined
  readonly remainingQuota: number | undefined
  readonly code: ErrorAnswer | 'provider_malformed'
  readonly reason: string
  readonly retryAfterMs: number | undefined
  readonly cause: unknown
}

const MAX_REDIRECTS = 3
const ERROR_BODY_BYTES = 16 * 1024
const QUOTA_HEADERS = ['x-ratelimit-remaining', 'ratelimit-remaining', 'x-rate-limit-remaining'] as const

/** A request that is sent once. */
export interface Sending {
  readonly settings: HttpSettings
  readonly request: HttpRequest
  readonly headers: Headers
  readonly target: Target
  /** Number of earlier attempts of the request. */
  readonly retries: number
}

/**
 * Sends a request once and reads the complete response, in its own span if it is part of a trace. The trace context is
 * not sent to the provider, because it is internal. Rejects only with the reason of an aborted signal.
 */
export async function attempt(sending: Sending, proxiedFetch: Fetch | undefined): Promise<Answer | Failure> {
  const { request } = sending
  const span = startStep(`${toMethod(request)} ${toRoute(request)}`, () => toSpanOptions(sending))
  if (span === undefined) return sendAndRead(sending, proxiedFetch)
  try {
    const result = await within(span, () => sendAndRead(sending, proxiedFetch))
    if (result.status !== undefined) span.setAttribute('http.response.status_code', result.status)
    if ('reason' in result) setFailure(span, result)
    return result
  } catch (error) {
    recordFailure(span, error)
    throw error
  } finally {
    span.end()
  }
}

function setFailure(span: Span, { status, code, reason, cause }: Failure): void {
  span.setAttribute('error.type', status === undefined || status < 400 ? code : String(status))
  if (cause !== undefined) span.addEvent('exception', { 'exception.type': toErrorType(cause) })
  span.setStatus({ code: SpanStatusCode.ERROR, message: reason })
}

const toRoute = ({ route, path }: HttpRequest) => route ?? path

function toSpanOptions({ settings, request, target, retries }: Sending) {
  const { url, shown } = target
  const attributes: Attributes = {
    'dao_data.provider': settings.provider,
    'http.request.method': toMethod(request),
    'url.template': toRoute(request),
    // The path of the base URL is omitted: it may contain a node's key or a bot's token.
    'url.full': `${url.protocol}//${url.host}/...${shown}`,
    'server.address': url.hostname,
  }
  if (url.port !== '') attributes['server.port'] = Number(url.port)
  if (retries > 0) attributes['http.request.resend_count'] = retries
  return { kind: SpanKind.CLIENT, attributes }
}

async function sendAndRead(
  { settings, request, headers, target }: Sending,
  proxiedFetch: Fetch | undefined,
): Promise<Answer | Failure> {
  const { timeoutMs } = settings
  const maxBytes = settings.maxBytes * (request.timesMaxBytes ?? 1)
  const stop = new AbortController()
  const abort = () => stop.abort(request.signal.reason)
  const timer = setTimeout(() => stop.abort(), timeoutMs)
  request.signal.addEventListener('abort', abort, { once: true })
  let status: number | undefined
  try {
    request.signal.throwIfAborted()
    const response = await send(request, headers, target, stop.signal, proxiedFetch)
    status = response.status
    const contentType = response.headers.get('content-type')
    const remainingQuota = toRemainingQuota(response)
    if (request.absent?.includes(status)) {
      await response.body?.cancel()
      return { status, remainingQuota, isAbsent: true, contentType, body: '' }
    }
    const isAnswer = (status >= 200 && status < 300) || request.answers?.includes(status)
    if (!isAnswer) {
      const failure = await toFailure(settings, response, target)
      request.signal.throwIfAborted()
      const { said } = failure
      if (said === undefined || !isTakenAsAnswer(request, status, said)) return failure
      return { status, remainingQuota, isAbsent: false, ...said }
    }
    const body = await readBody(response, maxBytes)
    request.signal.throwIfAborted()
    return { status, remainingQuota, isAbsent: false, contentType, body }
  } catch (cause) {
    request.signal.throwIfAborted()
    const isTooLarge = cause instanceof BodyTooLarge
    const code = isTooLarge ? 'provider_malformed' : 'provider_unavailable'
    const reason = isTooLarge
      ? `the answer is over the cap of ${maxBytes} bytes`
      : stop.signal.aborted
        ? `no whole answer within ${timeoutMs} ms`
        : `the connection failed (${toNetworkReason(cause)})`
    return { status, said: undefined, remainingQuota: undefined, code, reason, retryAfterMs: undefined, cause }
  } finally {
    clearTimeout(timer)
    request.signal.removeEventListener('abort', abort)
  }
}

/** Returns whether a response with an error status has a body that counts as an answer. */
function isTakenAsAnswer({ isAnswer }: HttpRequest, status: number, said: NonNullable<Failure['said']>): boolean {
  if (isAnswer === undefined || !isJsonType(said.contentType)) return false
  try {
    return isAnswer(JSON.parse(said.body), status)
  } catch {
    // A gateway's page, or a body that was cut because it is too long for an error.
    return false
  }
}

/** POST when there is a body, else GET, unless the request names a method. */
export const toMethod = ({ method, body }: Pick<HttpRequest, 'method' | 'body'>) =>
  method ?? (body === undefined ? 'GET' : 'POST')

/** Follows redirects on the same origin only: keys travel in headers and must not reach another host. */
async function send(
  request: HttpRequest,
  headers: Headers,
  target: Target,
  signal: AbortSignal,
  proxiedFetch: Fetch | undefined,
): Promise<Response> {
  const body = request.body === undefined ? null : JSON.stringify(request.body)
  const method = toMethod(request)
  let url = target.url
  for (let redirects = 0; ; redirects += 1) {
    // The platform's `fetch` is looked up at each call, because tests replace it.
    const response = await (proxiedFetch ?? fetch)(url, { method, headers, body, signal, redirect: 'manual' })
    const next = toRedirect(response, url)
    const isFollowed = next?.origin === url.origin && redirects < MAX_REDIRECTS
    const isRepeatable = method === 'GET' || response.status === 307 || response.status === 308
    if (!next || !isFollowed || !isRepeatable) return response
    await response.body?.cancel()
    url = next
  }
}

function toRedirect(response: Response, from: URL): URL | undefined {
  const location = response.status >= 300 && response.status < 400 ? response.headers.get('location') : null
  return location !== null && URL.canParse(location, from.href) ? new URL(location, from) : undefined
}

async function toFailure(settings: HttpSettings, response: Response, target: Target): Promise<Failure> {
  const { status, headers } = response
  const body = await readErrorBody(response)
  const reading = settings.readError?.(status, body, headers)
  const isTransient = status === 408 || status === 429 || status >= 500
  const code = reading?.code ?? (isTransient ? 'provider_unavailable' : 'provider_rejected')
  const redirect = toRedirect(response, target.url)
  const says = redirect ? `redirect to ${redirect.host} not followed` : target.excerpt(reading?.says ?? body)
  return {
    status,
    said: { contentType: headers.get('content-type'), body },
    remainingQuota: toRemainingQuota(response),
    code,
    reason: says === '' ? `status ${status}` : `status ${status}: ${says}`,
    retryAfterMs:
      reading?.retryAfterMs ?? toRetryAfterMs(headers.get('retry-after') ?? toLimitReset(response), Date.now()),
    cause: undefined,
  }
}

/** Some hosts send only the time until their limit is reset, in seconds from now. */
function toLimitReset({ status, headers }: Response): string | null {
  return status === 429 ? headers.get('ratelimit-reset') : null
}

/** The status already decides what happens. If the body cannot be read, only the detail in the message is lost. */
async function readErrorBody(response: Response): Promise<string> {
  try {
    return await readExcerpt(response, ERROR_BODY_BYTES)
  } catch (error) {
    return `(unreadable body: ${toNetworkReason(error)})`
  }
}

function toRemainingQuota({ headers }: Response): number | undefined {
  const header = QUOTA_HEADERS.map((name) => headers.get(name)).find((value) => value !== null)
  const remaining = header === undefined || header?.trim() === '' ? Number.NaN : Number(header)
  return Number.isFinite(remaining) ? remaining : undefined
}

/**
 * The platform's message is only "fetch failed"; the error code of the cause has the reason. Exception: for codes of
 * the HTTP client, the message has more information, such as a proxy's refusal behind `UND_ERR_ABORTED`.
 */
function toNetworkReason(error: unknown): string {
  let cause = error
  while (cause instanceof Error && cause.cause !== undefined) cause = cause.cause
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  return typeof code === 'string' && code !== 'UND_ERR_ABORTED' ? code : toReason(cause)
}

/**
 * Returns the wait of a `Retry-After` header in milliseconds from `now`. Undefined if there is no wait: no header,
 * neither whole seconds nor an HTTP date, a time in the past, or `0`. Providers that send `0` reject the next request
 * again (docs/providers.md, section 2).
 */
export function toRetryAfterMs(header: string | null, now: number): number | undefined {
  const value = header?.trim() ?? ''
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : /^[A-Z][a-z]{2}/.test(value) ? Date.parse(value) - now : 0
  return ms > 0 ? ms : undefined
}

/** The body of a response is larger than the limit. */
export class BodyTooLarge extends Error {}

/**
 * Reads a complete body of at most `maxBytes` after decompression.
 * @throws BodyTooLarge above the limit, and the connection's error if it breaks.
 */
async function readBody(response: Response, maxBytes: number): Promise<string> {
  const { text, complete } = await readUpTo(response, maxBytes)
  if (!complete) throw new BodyTooLarge()
  return text
}

/** Reads the beginning of a body, up to `maxBytes`. Enough for an error response of any length. */
async function readExcerpt(response: Response, maxBytes: number): Promise<string> {
  return (await readUpTo(response, maxBytes)).text
}

async function readUpTo(response: Response, maxBytes: number): Promise<{ text: string; complete: boolean }> {
  const parts: Uint8Array[] = []
  let bytes = 0
  // Decodes the whole buffer: decoding large bodies chunk by chunk takes three times as long.
  const toText = () => new TextDecoder().decode(Buffer.concat(parts))
  // Leaving the loop cancels the stream, so that the rest of an oversized body is not downloaded.
  for await (const chunk of response.body ?? []) {
    const room = maxBytes - bytes
    bytes += chunk.byteLength
    parts.push(chunk.subarray(0, room))
    if (bytes > maxBytes) return { text: toText(), complete: false }
  }
  return { text: toText(), complete: true }
}

/** Returns whether a content type is JSON. A response without a content type may be JSON. */
export function isJsonType(contentType: string | null): boolean {
  return contentType === null || /^\s*application\/([\w.+-]+\+)?json\b/i.test(contentType)
}
