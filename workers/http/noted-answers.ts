import { AsyncLocalStorage } from 'node:async_hooks'
import { declarations } from '../../shared/config/providers/list.ts'
import { SECRET_MEMBER, withEncodings } from '../../shared/config/secrets.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import { type Answer, type Failure, toMethod } from './attempt.ts'
import type { HttpRequest, Target } from './types.ts'

/** A request without keys, tokens and account names. Equal requests of a provider have equal members. */
export interface ShownRequest {
  readonly provider: string
  readonly method: 'GET' | 'POST'
  /** Only the domain, if the operator chose the host: the name of a node's host may be that of an account. */
  readonly host: string
  /** Path without that of the base URL, which may contain a key. */
  readonly path: string
  readonly query: string
  /** The JSON body of the request; empty without one. */
  readonly sent: string
}

/** One attempt of a request and its result. */
export interface NotedAnswer extends ShownRequest {
  /** 0 if there is no response: `reason` then has the failure. */
  readonly status: number
  readonly contentType: string | null
  /** Number of earlier attempts of the request, plus 1. */
  readonly attempt: number
  /** The body without the provider's keys. */
  readonly body: string
  /** The error code of a request without a response. */
  readonly code: string
  readonly reason: string
}

/** The receiver of the answers of the running work. */
export const sinks = new AsyncLocalStorage<(answer: NotedAnswer) => void>()

const DEFAULT_HOSTS: ReadonlySet<string> = new Set(
  declarations.flatMap(({ settings }) =>
    Object.entries(settings).flatMap(([name, setting]) => {
      if (!name.endsWith('_BASE_URL')) return []
      const url = setting.safeParse(undefined).data
      return typeof url === 'string' && URL.canParse(url) ? [new URL(url).host] : []
    }),
  ),
)

/** Returns the host, or only its domain if the host is not a default one. Addresses and ports are unchanged. */
export function toShownHost(host: string): string {
  const labels = host.split('.')
  const isAddress = host.includes('[') || /^[\d.]+(:\d+)?$/.test(host)
  return DEFAULT_HOSTS.has(host) || isAddress || labels.length <= 2 ? host : `*.${labels.slice(-2).join('.')}`
}

const MASK = '[redacted]'

/** Returns what may be stored of a request. */
export function toShownRequest(
  provider: string,
  request: Pick<HttpRequest, 'path' | 'query' | 'method' | 'body'>,
  target: Pick<Target, 'url' | 'secrets'>,
): ShownRequest {
  const redact = toRedactor(target.secrets())
  const own = new URL(request.path, 'http://host')
  const query = new URLSearchParams(own.search)
  for (const [name, value] of Object.entries(request.query ?? {}))
    if (value !== undefined) query.set(name, String(value))
  for (const name of new Set(query.keys())) if (SECRET_MEMBER.test(name)) query.set(name, MASK)
  const shown = [...query].map(([name, value]) => `${name}=${value}`).join('&')
  const sent =
    request.body === undefined
      ? ''
      : JSON.stringify(request.body, (name, value: unknown) =>
          typeof value === 'string' && SECRET_MEMBER.test(name) ? MASK : value,
        )
  return {
    provider,
    method: toMethod(request),
    host: toShownHost(target.url.host),
    path: redact(own.pathname),
    query: redact(shown),
    sent: redact(sent),
  }
}

/** Shorter keys, such as `freekey`, may be ordinary words of a body. */
const SHORTEST_IN_BODY = 8

function toRedactor(secrets: readonly string[]): (text: string) => string {
  const sorted = withEncodings(secrets)
  return (text) => sorted.reduce((clean, secret) => clean.replaceAll(secret, MASK), text)
}

/**
 * Sends one attempt and passes its result to the sink of the running work. Requests that were not sent are noted too:
 * without them, the work could not be repeated.
 */
export async function noting(
  { provider, request, target, attempt }: { provider: string; request: HttpRequest; target: Target; attempt: number },
  send: () => Promise<Answer | Failure>,
): Promise<Answer | Failure> {
  const sink = sinks.getStore()
  if (sink === undefined) return send()
  const note = (result: Pick<NotedAnswer, 'status' | 'contentType' | 'body' | 'code' | 'reason'>) =>
    sink({ ...toShownRequest(provider, request, target), attempt, ...result })
  try {
    const result = await send()
    const { contentType, body } = 'body' in result ? result : (result.said ?? { contentType: null, body: '' })
    const redact = toRedactor(target.secrets().filter((secret) => secret.length >= SHORTEST_IN_BODY))
    const failure = 'reason' in result ? result : { code: '', reason: '' }
    // A response whose body could not be read has the status of the failure, not of an answer.
    const status = 'reason' in result && result.said === undefined ? 0 : (result.status ?? 0)
    note({
      status,
      contentType,
      body: redact(body),
      code: failure.code,
      reason: toRedactor(target.secrets())(failure.reason),
    })
    return result
  } catch (error) {
    const code = error instanceof DataError ? error.code : 'provider_unavailable'
    note({ status: 0, contentType: null, body: '', code, reason: toRedactor(target.secrets())(toReason(error)) })
    throw error
  }
}

export type StoredResponse = Pick<NotedAnswer, 'status' | 'contentType' | 'body' | 'code' | 'reason'>

/** Answers requests from stored bodies, without any network. */
export interface StoredAnswers {
  /** @throws DataError if the request has no stored answer. */
  take(request: ShownRequest): Promise<StoredResponse>
}

/**
 * Returns the response of a stored answer, as `fetch` would return it.
 * @throws DataError with the stored code, if the request had no response.
 */
export function toStoredResponse({ status, contentType, body, code, reason }: StoredResponse): Response {
  if (status === 0) throw new DataError(isErrorCode(code) ? code : 'provider_unavailable', reason)
  const headers = contentType === null ? undefined : { 'content-type': contentType }
  return new Response(body === '' ? null : body, { status, ...(headers && { headers }) })
}

const CODES = ['provider_unavailable', 'provider_rejected', 'provider_exhausted', 'provider_malformed'] as const
const isErrorCode = (code: string): code is (typeof CODES)[number] => CODES.some((known) => known === code)
