import type { Config } from '../../shared/config/config.ts'
import { toReason } from '../../shared/errors.ts'
import { BodyTooLarge, isJsonType, readBody, readExcerpt } from './body.ts'
import { requireInTime } from './deadline.ts'
import type { ErrorAnswer, HttpRequest, HttpSettings } from './request.ts'
import { toRetryAfterMs } from './retry.ts'
import { type Target, toExcerpt } from './target.ts'

/** A success: the whole body of a 2xx answer, or the word that there is nothing. */
export interface Answer {
  readonly status: number
  readonly quotaLeft: number | undefined
  readonly isAbsent: boolean
  readonly contentType: string | null
  readonly body: string
}

/** One request that did not succeed, and what that means for the next. */
export interface Failure {
  readonly status: number | undefined
  /** The beginning of what came with the status. */
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

/** Sends a request once and reads its answer to the end. Rejects only with the reason of an aborted signal. */
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

/** Whether an error status comes with a body that is an answer all the same. */
function isTakenAsAnswer({ isAnswer }: HttpRequest, status: number, said: NonNullable<Failure['said']>): boolean {
  if (isAnswer === undefined || !isJsonType(said.contentType)) return false
  try {
    return isAnswer(JSON.parse(said.body), status)
  } catch {
    // A gateway's page, or a body that is too long for an error.
    return false
  }
}

/** POST when there is a body, else GET, unless the request names a method. */
export const toMethod = ({ method, body }: HttpRequest) => method ?? (body === undefined ? 'GET' : 'POST')

/** Sends one request; the platform's `fetch`, or one that goes through proxies. */
export type Fetch = (url: URL, init: RequestInit) => Promise<Response>

/** Requests to this machine, such as to a node beside the workers, never leave it. */
const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']

/** The way to providers: through the proxies of the settings, if there are any. */
export function createFetch({ http, https, none }: Config['proxy']): Fetch {
  // At each call: tests put a fetch of their own in its place.
  if (http === undefined && https === undefined) return (url, init) => fetch(url, init)
  const noProxy = none.trim() === '*' ? '*' : [none, ...LOOPBACK].join(',')
  // Only where there is a proxy: the package takes 20 MB of memory.
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

/** The package's types of requests and responses are not the platform's, which behave alike. */
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

/** Some hosts say only when their limit is lifted, in seconds from now. */
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
 * The platform says only "fetch failed"; the code of the cause says what went wrong. Codes of the HTTP client itself say less
 * than their messages: a proxy's refusal is `UND_ERR_ABORTED`.
 */
function toNetworkReason(error: unknown): string {
  let cause = error
  while (cause instanceof Error && cause.cause !== undefined) cause = cause.cause
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  return typeof code === 'string' && code !== 'UND_ERR_ABORTED' ? code : toReason(cause)
}
