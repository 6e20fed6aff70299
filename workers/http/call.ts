import { createRedactor, SECRET_MEMBER, toUrlSecrets } from '../../shared/config/secrets.ts'
import { DataError } from '../../shared/errors.ts'
import { HOUR_MS } from '../../shared/intervals.ts'
import type { Fetch } from '../../shared/proxied-fetch.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { type Answer, attempt, type Failure, isJsonType, toMethod } from './attempt.ts'
import { LONGEST_WAIT_MS, type RateLimit, sleep } from './limits.ts'
import { noting, type StoredAnswers, toShownRequest, toStoredResponse } from './noted-answers.ts'
import type { Exchange, HttpClient, HttpRequest, HttpSettings, ProviderCall, Query, Target } from './types.ts'

/** State of a running call. */
interface Progress {
  status: number | undefined
  remainingQuota: number | undefined
  retries: number
  isSent: boolean
}

const DEFAULT_RETRIES = 3
interface CallOptions {
  readonly log: Logger
  readonly observe?: ((call: ProviderCall) => void) | undefined
  readonly record?: ((exchange: Exchange) => void) | undefined
  readonly backoffMs?: number
  readonly stored?: StoredAnswers | undefined
}

/** Creates the client of one provider's host. */
export function createCaller(
  settings: HttpSettings,
  { limit, exhausted, proxiedFetch }: { limit: RateLimit; exhausted: ExhaustedPlan; proxiedFetch: Fetch | undefined },
  options: CallOptions,
): HttpClient {
  const { provider } = settings
  const { backoffMs = 500, log, observe, record, stored } = options

  async function fetchAnswer<T>(request: HttpRequest, read: (answer: Answer, target: Target) => T): Promise<T> {
    const headers = toHeaders(provider, { ...settings.headers, ...request.headers })
    if (request.body !== undefined) headers.set('content-type', 'application/json')
    const { baseUrl, secrets } = settings
    const target = toTarget({ baseUrl, path: request.path, query: request.query, headers, secrets })
    const progress: Progress = { status: undefined, remainingQuota: undefined, retries: 0, isSent: false }
    const startedAt = performance.now()
    let outcome: ProviderCall['outcome'] = 'aborted'
    try {
      const answer = await sendUntilAnswered(request, headers, target, progress)
      const value = read(answer, target)
      outcome = 'ok'
      return value
    } catch (error) {
      if (error instanceof DataError && !request.signal.aborted)
        outcome = progress.isSent ? (OUTCOMES[error.code] ?? 'malformed') : 'unsent'
      throw error
    } finally {
      const { remainingQuota, status, retries } = progress
      const seconds = (performance.now() - startedAt) / 1000
      const path = request.route ?? request.path
      observe?.({
        provider,
        path,
        outcome,
        seconds,
        status,
        retries,
        ...(remainingQuota === undefined ? {} : { remainingQuota }),
      })
    }
  }

  async function sendUntilAnswered(request: HttpRequest, headers: Headers, target: Target, progress: Progress) {
    const { signal, retries = DEFAULT_RETRIES } = request
    for (;;) {
      const attempted = { provider, request, target, attempt: progress.retries + 1 }
      const result = await noting(attempted, () => sendOnce(request, headers, target, progress))
      if (result.status !== undefined) record?.(toExchange(provider, request, target, result.status, result))
      progress.status = result.status
      progress.remainingQuota = result.remainingQuota ?? progress.remainingQuota
      if ('body' in result) return result
      exhausted.note(result)
      const { code, reason, retryAfterMs } = result
      const failed = `${provider} ${target.shown}: ${reason}`
      const isPatient = (retryAfterMs ?? 0) <= LONGEST_WAIT_MS
      if (code !== 'provider_unavailable' || progress.retries >= retries || !isPatient) {
        throw new DataError(code, failed, { cause: result.cause, retryAfterMs, status: result.status })
      }
      const jitterMs = toBackoffMs(backoffMs, progress.retries, Math.random())
      const waitMs = Math.round(retryAfterMs === undefined ? jitterMs : retryAfterMs + jitterMs)
      progress.retries += 1
      log.warn({ provider, retry: progress.retries, waitMs, reason: failed }, 'provider request failed, retrying')
      await sleep(waitMs, signal)
    }
  }

  async function sendOnce(request: HttpRequest, headers: Headers, target: Target, progress: Progress) {
    const sending = { settings, request, headers, target, retries: progress.retries }
    if (stored !== undefined) {
      const response = toStoredResponse(await stored.take(toShownRequest(provider, request, target)))
      progress.isSent = true
      return attempt(sending, async () => response)
    }
    throwIfExhausted(target)
    await limit.take(request.signal, request.cost, request.units)
    progress.isSent = true
    return attempt(sending, proxiedFetch)
  }

  function throwIfExhausted(target: Target): void {
    const refusal = exhausted.get()
    if (refusal === undefined) return
    const { reason, retryAfterMs } = refusal
    throw new DataError('provider_exhausted', `${provider} ${target.shown}: ${reason}`, { retryAfterMs })
  }

  return {
    json: (request) => fetchAnswer(request, (answer, target) => toJson(provider, answer, target, request.isAnswer)),
    text: (request) => fetchAnswer(request, ({ isAbsent, body }) => (isAbsent ? undefined : body)),
  }
}

function toExchange(
  provider: string,
  request: HttpRequest,
  { url }: Target,
  status: number,
  result: Answer | Failure,
): Exchange {
  const { contentType, body } = 'body' in result ? result : (result.said ?? { contentType: null, body: '' })
  return {
    provider,
    method: toMethod(request),
    url: url.href,
    sent: request.body,
    status,
    contentType,
    body,
  }
}

const OUTCOMES: Readonly<Record<string, ProviderCall['outcome']>> = {
  provider_unavailable: 'unavailable',
  provider_rejected: 'rejected',
  provider_exhausted: 'rejected',
  provider_unconfigured: 'rejected',
  provider_malformed: 'malformed',
}

function toJson(
  provider: string,
  { status, isAbsent, body, contentType }: Answer,
  target: Target,
  isAnswer: HttpRequest['isAnswer'],
): unknown {
  if (isAbsent) return undefined
  const found = () => (body === '' ? 'an empty body' : target.excerpt(body))
  const isError = status >= 400
  if (!isJsonType(contentType)) {
    if (isError) return undefined
    const message = `${provider} ${target.shown}: expected JSON, received ${contentType}: ${found()}`
    throw new DataError('provider_malformed', message)
  }
  try {
    const value: unknown = JSON.parse(body)
    return isError && isAnswer?.(value, status) === false ? undefined : value
  } catch (cause) {
    if (isError) return undefined
    throw new DataError('provider_malformed', `${provider} ${target.shown}: not JSON: ${found()}`, { cause })
  }
}

/**
 * Returns the headers of a request.
 * @throws DataError `config` for a header that cannot be sent, such as a key with a line break. The platform's own
 *   message would contain the key.
 */
export function toHeaders(provider: string, extra: Readonly<Record<string, string>> = {}): Headers {
  const headers = new Headers({ accept: 'application/json', 'user-agent': 'dao-data' })
  for (const [name, value] of Object.entries(extra)) {
    try {
      headers.set(name, value)
    } catch {
      throw new DataError('config', `${provider}: the header ${name} has characters that no header may have`)
    }
  }
  return headers
}

/** One call per hour detects a larger plan or an early reset. */
const PLAN_CHECK_MS = HOUR_MS

/** The last refusal of an exhausted plan, so that the same refusal is not requested again. */
export interface ExhaustedPlan {
  /** Stores a refusal that includes the time until the plan's reset; ignores other failures. */
  note(failure: Pick<Failure, 'code' | 'reason' | 'retryAfterMs'>): void
  /** Returns the refusal while it is valid, with the milliseconds until the plan's reset. */
  get(): { readonly reason: string; readonly retryAfterMs: number } | undefined
}

/**
 * State of one provider in this process. A changed key needs a new process, which starts without state. Uses a
 * monotonic clock, so clock changes have no effect.
 */
export function createExhaustedPlan(): ExhaustedPlan {
  let refusal = { reason: '', resetAt: 0, validUntil: 0 }
  return {
    note({ code, reason, retryAfterMs }) {
      if (code !== 'provider_exhausted' || retryAfterMs === undefined) return
      const now = performance.now()
      refusal = { reason, resetAt: now + retryAfterMs, validUntil: now + Math.min(retryAfterMs, PLAN_CHECK_MS) }
    },
    get() {
      const now = performance.now()
      return now < refusal.validUntil ? { reason: refusal.reason, retryAfterMs: refusal.resetAt - now } : undefined
    },
  }
}

const LONGEST_BACKOFF_MS = 30_000

/** Exponential backoff with full jitter; `random` is in [0, 1). */
export function toBackoffMs(baseMs: number, retry: number, random: number): number {
  return random * Math.min(LONGEST_BACKOFF_MS, baseMs * 2 ** retry)
}

const SHOWN_QUERY = 160

interface Parts {
  readonly baseUrl: string
  readonly path: string
  readonly query?: Query | undefined
  /** Gets the credentials of the base URL. */
  readonly headers: Headers
  /** Further secrets. */
  readonly secrets?: readonly string[] | undefined
}

/** Joins base, path and query; undefined members are omitted. Texts are redacted only when they are needed. */
export function toTarget({ baseUrl, path, query = {}, headers, secrets = [] }: Parts): Target {
  const url = new URL(baseUrl.replace(/\/+$/, '') + path)
  const parameters = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [{ name, value: String(value), isSecret: SECRET_MEMBER.test(name) }],
  )
  moveCredentials(url, headers)
  for (const { name, value } of parameters) url.searchParams.set(name, value)
  const findAll = () => {
    const ofQuery = parameters.filter(({ isSecret }) => isSecret).map(({ value }) => value)
    // "Bearer <key>": the provider may repeat the key without its scheme.
    const ofHeaders = [...headers].flatMap(([name, value]) =>
      SECRET_MEMBER.test(name) ? [value, value.slice(value.lastIndexOf(' ') + 1)] : [],
    )
    return [...toUrlSecrets(baseUrl), ...secrets, ...ofQuery, ...ofHeaders].filter((secret) => secret !== '')
  }
  const redact = (text: string) => createRedactor(findAll())(text)
  return {
    url,
    secrets: findAll,
    get shown() {
      const joined = parameters
        .map(({ name, value, isSecret }) => `${name}=${isSecret ? '[redacted]' : value}`)
        .join('&')
      const cut = joined.length > SHOWN_QUERY ? `${joined.slice(0, SHOWN_QUERY)}...` : joined
      return redact(cut === '' ? path : `${path}?${cut}`)
    },
    excerpt: (text) => {
      const line = redact(text).replace(/\s+/g, ' ').trim()
      return line.length > 200 ? `${line.slice(0, 200)}...` : line
    },
  }
}

/**
 * Moves the URL's credentials to the equivalent Authorization header. The platform rejects URLs with credentials and
 * includes them in its message.
 */
function moveCredentials(url: URL, headers: Headers): void {
  if (url.username === '' && url.password === '') return
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
  if (!headers.has('authorization')) {
    headers.set('authorization', `Basic ${Buffer.from(credentials).toString('base64')}`)
  }
  url.username = ''
  url.password = ''
}
