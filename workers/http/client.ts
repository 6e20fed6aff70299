import type { Config } from '../../shared/config/config.ts'
import { DataError } from '../../shared/errors.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { type Answer, attempt, createFetch, type Failure, type Fetch, toMethod } from './attempt.ts'
import { inAttemptSpan } from './attempt-span.ts'
import { isJsonType } from './body.ts'
import { type LimitOptions, toLimits } from './provider-limits.ts'
import type { RateLimit } from './rate-limit.ts'
import type { Exchange, HttpRequest, HttpSettings } from './request.ts'
import { LONGEST_WAIT_MS, sleep, toBackoffMs } from './retry.ts'
import { type Target, toExcerpt, toTarget } from './target.ts'
import { createUsedUp, type UsedUp } from './used-up.ts'

/**
 * Sends requests within the provider's rate limit. Retries after network errors, timeouts, 408, 429 and 5xx. Both
 * methods throw a DataError whose message names provider, path and reason, but never a key:
 * - `provider_unavailable` if the retries are exhausted; without further retries if the provider's wait is longer than
 *   a minute or the hourly quota is exhausted for longer. `retryAfterMs` is the wait.
 * - `provider_rejected` for any other error status and for redirects to another host. The provider's `readError` may
 *   replace it by `provider_exhausted` (plan exhausted) or `provider_unconfigured` (not part of the plan). These are
 *   never retried. If the plan's reset time is known, further requests fail with the same error without being sent.
 * - `provider_malformed` for a body above the size limit, of the wrong content type or, for `json`, invalid JSON.
 *
 * Rejects with the signal's reason if it is aborted or the response was read after the signal's deadline.
 */
export interface HttpClient {
  json(request: HttpRequest): Promise<unknown>
  text(request: HttpRequest): Promise<string | undefined>
}

/**
 * Result of one call including its retries. `unsent`: not sent, because the provider's plan or our budget for it is
 * exhausted. `quotaLeft` is the remaining limit reported by the provider.
 */
export interface ProviderCall {
  readonly provider: string
  readonly path: string
  readonly outcome: 'ok' | 'rejected' | 'unavailable' | 'malformed' | 'unsent' | 'aborted'
  readonly status: number | undefined
  readonly seconds: number
  readonly retries: number
  readonly quotaLeft?: number
}

export interface HttpClients {
  open(settings: HttpSettings): HttpClient
}

/** HTTP clients of both queue classes. `history` clients may use only a share of each limit. */
export interface LaneClients extends HttpClients {
  readonly history: HttpClients
}

interface Options extends LimitOptions {
  readonly log: Logger
  /** Proxies for requests to providers; default none. */
  readonly proxy?: Config['proxy']
  readonly observe?: (call: ProviderCall) => void
  /** Receives every response, including errors. Secrets are not removed. */
  readonly record?: ((exchange: Exchange) => void) | undefined
  /** First backoff in milliseconds before jitter, doubled for each retry; default 500. */
  readonly backoffMs?: number
}

/** State of a running call. */
interface Progress {
  status: number | undefined
  quotaLeft: number | undefined
  retries: number
  isSent: boolean
}

const DEFAULT_RETRIES = 3
const NO_PROXY: Config['proxy'] = { http: undefined, https: undefined, none: '' }

/**
 * Creates the clients of all providers. They share the rate limits and the quotaExhausted state, so a process creates
 * them once.
 */
export function createHttpClients(options: Options): LaneClients {
  const fetchOnce = createFetch(options.proxy ?? NO_PROXY)
  const providers = new Map<string, { whole: RateLimit; history: RateLimit; usedUp: UsedUp }>()
  const toOpen = (lane: 'whole' | 'history') => (settings: HttpSettings) => {
    const held = providers.get(settings.provider) ?? { ...toLimits(settings, options), usedUp: createUsedUp() }
    providers.set(settings.provider, held)
    toHeaders(settings.provider, settings.headers)
    return createClient(settings, { limit: held[lane], usedUp: held.usedUp, fetchOnce }, options)
  }
  return { open: toOpen('whole'), history: { open: toOpen('history') } }
}

function createClient(
  settings: HttpSettings,
  { limit, usedUp, fetchOnce }: { limit: RateLimit; usedUp: UsedUp; fetchOnce: Fetch },
  options: Options,
): HttpClient {
  const { provider } = settings
  const { backoffMs = 500, log, observe, record } = options

  async function fetchAnswer<T>(request: HttpRequest, read: (answer: Answer, target: Target) => T): Promise<T> {
    const headers = toHeaders(provider, { ...settings.headers, ...request.headers })
    if (request.body !== undefined) headers.set('content-type', 'application/json')
    const target = toTarget(settings.baseUrl, request.path, request.query ?? {}, headers, settings.secrets)
    const progress: Progress = { status: undefined, quotaLeft: undefined, retries: 0, isSent: false }
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
      const { quotaLeft, status, retries } = progress
      const seconds = (performance.now() - startedAt) / 1000
      const path = request.route ?? request.path
      observe?.({
        provider,
        path,
        outcome,
        seconds,
        status,
        retries,
        ...(quotaLeft === undefined ? {} : { quotaLeft }),
      })
    }
  }

  async function sendUntilAnswered(request: HttpRequest, headers: Headers, target: Target, progress: Progress) {
    const { signal, retries = DEFAULT_RETRIES } = request
    for (;;) {
      refuseUsedUp(target)
      await limit.take(signal, request.cost, request.units)
      progress.isSent = true
      const traced = { provider, request, target, retries: progress.retries }
      const result = await inAttemptSpan(traced, () => attempt(settings, request, headers, target, fetchOnce))
      if (result.status !== undefined) record?.(toExchange(provider, request, target, result.status, result))
      progress.status = result.status
      progress.quotaLeft = result.quotaLeft ?? progress.quotaLeft
      if ('body' in result) return result
      usedUp.note(result)
      const { code, reason, retryAfterMs } = result
      const failed = `${provider} ${target.shown}: ${reason}`
      const isPatient = (retryAfterMs ?? 0) <= LONGEST_WAIT_MS
      if (code !== 'provider_unavailable' || progress.retries >= retries || !isPatient) {
        throw new DataError(code, failed, { cause: result.cause, retryAfterMs, status: result.status })
      }
      const jitterMs = toBackoffMs(backoffMs, progress.retries, Math.random())
      const waitMs = Math.round(retryAfterMs === undefined ? jitterMs : retryAfterMs + jitterMs)
      progress.retries += 1
      log.warn({ provider, retry: progress.retries, waitMs, reason: failed }, 'provider call failed, trying again')
      await sleep(waitMs, signal)
    }
  }

  function refuseUsedUp({ shown }: Target): void {
    const told = usedUp.get()
    if (told === undefined) return
    const { reason, retryAfterMs } = told
    throw new DataError('provider_exhausted', `${provider} ${shown}: ${reason}`, { retryAfterMs })
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
  { shown, secrets }: Target,
  isAnswer: HttpRequest['isAnswer'],
): unknown {
  if (isAbsent) return undefined
  const found = () => (body === '' ? 'an empty body' : toExcerpt(body, secrets))
  const isError = status >= 400
  if (!isJsonType(contentType)) {
    if (isError) return undefined
    const message = `${provider} ${shown}: expected JSON, received ${contentType}: ${found()}`
    throw new DataError('provider_malformed', message)
  }
  try {
    const value: unknown = JSON.parse(body)
    return isError && isAnswer?.(value, status) === false ? undefined : value
  } catch (cause) {
    if (isError) return undefined
    throw new DataError('provider_malformed', `${provider} ${shown}: not JSON: ${found()}`, { cause })
  }
}

/** A key with a line break is an error in the settings. The platform's own message would contain the key. */
function toHeaders(provider: string, given: Readonly<Record<string, string>> = {}): Headers {
  const headers = new Headers({ accept: 'application/json', 'user-agent': 'dao-data' })
  for (const [name, value] of Object.entries(given)) {
    try {
      headers.set(name, value)
    } catch {
      throw new DataError('config', `${provider}: the header ${name} has characters that no header may have`)
    }
  }
  return headers
}
