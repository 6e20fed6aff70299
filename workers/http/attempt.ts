import type { Config } from '../../shared/config/config.ts'
import { toReason } from '../../shared/errors.ts'
import { BodyTooLarge, isJsonType, readBody, readExcerpt } from './body.ts'
import { requireInTime } from './deadline.ts'
import type { ErrorAnswer, HttpRequest, HttpSettings } from './request.ts'
import { toRetryAfterMs } from './retry.ts'
import { type Target, toExcerpt } from './target.ts'

/** A success: the complete body of a 2xx response, or the statement that nothing exists. */
export interface Answer {
  readonly status: number
  readonly quotaLeft: number | undefined
  readonly isAbsent: boolean
  readonly contentType: string | null
  readonly body: string
}

/** An unsuccessful request and its meaning for retries. */
export interface Failure {
  readonly status: number | undefined
  /** The beginning of the response body. */
  readonly said: { readonly contentType: string | null; readonly body: string } | undefined
  readonly quotaLeft: number | undefined
  readonly code: ErrorAnswer | 'provider_malformed'
  readonly reason: string
  readonly retryAfterMs: number | undefined
  readonly cause: unknown
}

const MAX_REDIRECTS = 3
const ERROR_BODY_BYTES = 16 * 1024
const QUOTA_HEADERS = ['x-ratelimit-remaining', 'ratelimit-remaining', 'x-rate-limit-remaining'] as const

/** Sends a request once and reads the complete response. Rejects only with the reason of an aborted signal. */
export async function attempt(
  settings: HttpSettings,
  request: HttpRequest,
  headers: Headers,
  target: Target,
  fetchOnce: Fetch,
): Promise<Answer | Failure> {
  const { timeoutMs } = settings
  const maxBytes = settings.maxBytes * (request.timesMaxBytes ?? 1)
  const stop = new AbortController()
  const abort = () => stop.abort(request.signal.reason)
  const timer = setTimeout(() => stop.abort(), timeoutMs)
  request.signal.addEventListener('abort', abort, { once: true })
  let status: number | undefined
  try {
    requireInTime(request.signal)
    const response = await send(request, headers, target, stop.signal, fetchOnce)
    status = response.status
    const contentType = response.headers.get('content-type')
    const quotaLeft = toQuotaLeft(response)
    if (request.absent?.includes(status)) {
      await response.body?.cancel()
      return { status, quotaLeft, isAbsent: true, contentType, body: '' }
    }
    const isAnswer = (status >= 200 && status < 300) || request.answers?.includes(status)
    if (!isAnswer) {
      const failure = await toFailure(settings, response, target)
      requireInTime(request.signal)
      const { said } = failure
      if (said === undefined || !isTakenAsAnswer(request, status, said)) return failure
      return { status, quotaLeft, isAbsent: false, ...said }
    }
    const body = await readBody(response, maxBytes)
    requireInTime(request.signal)
    return { status, quotaLeft, isAbsent: false, contentType, body }
  } catch (cause) {
    request.signal.throwIfAborted()
    const isTooLarge = cause instanceof BodyTooLarge
    const code = isTooLarge ? 'provider_malformed' : 'provider_unavailable'
    const reason = isTooLarge
      ? `the answer is over the cap of ${maxBytes} bytes`
      : stop.signal.aborted
        ? `no whole answer within ${timeoutMs} ms`
        : `the connection failed (${toNetworkReason(cause)})`
    return { status, said: undefined, quotaLeft: undefined, code, reason, retryAfterMs: undefined, cause }
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
export const toMethod = ({ method, body }: HttpRequest) => method ?? (body === undefined ? 'GET' : 'POST')

/** Sends one request with the platform's `fetch`, or with one that uses proxies. */
export type Fetch = (url: URL, init: RequestInit) => Promise<Response>

/** Requests to this machine, such as to a local node, never use a proxy. */
const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']

/** Returns the `fetch` to use for providers, with the proxies of the settings. */
export function createFetch({ http, https, none }: Config['proxy']): Fetch {
  // `fetch` is looked up at each call, because tests replace it.
  if (http === undefined && https === undefined) return (url, init) => fetch(url, init)
  const noProxy = none.trim() === '*' ? '*' : [none, ...LOOPBACK].join(',')
  // Loaded only if there is a proxy: the package needs 20 MB of memory.
  const loaded = import('undici').then((undici) => {
    const dispatcher = new undici.EnvHttpProxyAgent({
      httpProxy: http ?? '',
      httpsProxy: https ?? '',
      noProxy,
      proxyTunnel: false,
    })
    return { fetch: undici.fetch as unknown as ProxiedFetch, dispatcher }
  })
  return async (url, init) => {
    const { fetch: fetchThrough, dispatcher } = await loaded
    return fetchThrough(url, { ...init, dispatcher })
  }
}

/** The package's request and response types differ from the platform's, but behave alike. */
type ProxiedFetch = (url: URL, init: object) => Promise<Response>

/** Follows redirects on the same origin only: keys travel in headers and must not reach another host. */
async function send(
  request: HttpRequest,
  headers: Headers,
  target: Target,
  signal: AbortSignal,
  fetchOnce: Fetch,
): Promise<Response> {
  const body = request.body === undefined ? null : JSON.stringify(request.body)
  const method = toMethod(request)
  let url = target.url
  for (let redirects = 0; ; redirects += 1) {
    const response = await fetchOnce(url, { method, headers, body, signal, redirect: 'manual' })
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
  const says = redirect ? `redirect to ${redirect.host} not followed` : toExcerpt(reading?.says ?? body, target.secrets)
  return {
    status,
    said: { contentType: headers.get('content-type'), body },
    quotaLeft: toQuotaLeft(response),
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

function toQuotaLeft({ headers }: Response): number | undefined {
  const header = QUOTA_HEADERS.map((name) => headers.get(name)).find((value) => value !== null)
  const left = header === undefined || header?.trim() === '' ? Number.NaN : Number(header)
  return Number.isFinite(left) ? left : undefined
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
