import type { ErrorCode } from '../../shared/errors.ts'

/** Query parameters; undefined ones are omitted. */
export type Query = Readonly<Record<string, string | number | undefined>>

/** Settings of requests to a provider's host. */
export interface HttpSettings {
  readonly provider: string
  readonly baseUrl: string
  readonly headers?: Readonly<Record<string, string>>
  /**
   * Further secrets to redact in messages. Keys in headers, in query parameters with such names and in the base URL are
   * always redacted.
   */
  readonly secrets?: readonly string[]
  /** Timeout of a complete response including the body; restarts with each retry. */
  readonly timeoutMs: number
  /** The largest body, after decompression. */
  readonly maxBytes: number
  /** Shared by all clients of the same provider name; the first one opened in a process sets it. */
  readonly requestsPerMinute: number
  /** Burst size, for a provider that also limits per second; default: a fifth of `requestsPerMinute`. */
  readonly burst?: number
  /** For a provider that also limits per hour. When the quota is exhausted, requests fail until the hour is over. */
  readonly requestsPerHour?: number
  /** For a plan that resets at midnight UTC. */
  readonly requestsPerDay?: number
  /** Name of the setting behind the daily limit, for messages. */
  readonly daySetting?: string
  /** Daily limit of history requests, if most of the plan is reserved for new data. */
  readonly historyRequestsPerDay?: number
  /** Interprets error responses whose status alone is misleading. */
  readonly readError?: (status: number, body: string, headers: Headers) => ErrorReading | undefined
}

/** Possible meanings of an error response (shared/errors.ts). */
export type ErrorAnswer = Extract<
  ErrorCode,
  'provider_unavailable' | 'provider_rejected' | 'provider_exhausted' | 'provider_unconfigured'
>

/**
 * Meaning of an error response. Only `provider_unavailable` is retried by the client. `says` replaces the excerpt of
 * the body, `retryAfterMs` the `Retry-After` header.
 */
export interface ErrorReading {
  readonly code: ErrorAnswer
  readonly says: string
  readonly retryAfterMs?: number | undefined
}

export interface HttpRequest {
  /** Appended to the base URL; begins with a slash. */
  readonly path: string
  /** Path with placeholders for ids, used as a metric label; default `path`. */
  readonly route?: string
  readonly query?: Query
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
  readonly signal: AbortSignal
  /** Statuses that mean "does not exist"; the call then returns undefined. */
  readonly absent?: readonly number[]
  /** Error statuses whose body is handled like that of a success. If it is not JSON, `json` returns undefined. */
  readonly answers?: readonly number[]
  /**
   * Returns whether JSON with an error status is an answer. If it is not: a status in `answers` returns undefined, any
   * other status fails.
   */
  readonly isAnswer?: (body: unknown, status: number) => boolean
  /** Factor for the size limit of the response; default 1. */
  readonly timesMaxBytes?: number
  /** Number of retries after a transient failure; default 3. */
  readonly retries?: number
  /** Requests billed for this one, such as the calls of a batch; default 1. */
  readonly cost?: number
  /** Units billed in a daily plan; default `cost`. */
  readonly units?: number
}

/** One request and its response, unchanged: secrets are not removed. */
export interface Exchange {
  readonly provider: string
  readonly method: 'GET' | 'POST'
  /** URL with query. */
  readonly url: string
  /** The JSON request body. */
  readonly sent: unknown
  readonly status: number
  readonly contentType: string | null
  readonly body: string
}

/**
 * Sends requests within the provider's rate limit. Retries after network errors, timeouts, 408, 429 and 5xx. Both
 * methods throw a DataError. Its message names provider, path and reason, but never a key:
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
 * exhausted. `remainingQuota` is the remaining limit reported by the provider.
 */
export interface ProviderCall {
  readonly provider: string
  readonly path: string
  readonly outcome: 'ok' | 'rejected' | 'unavailable' | 'malformed' | 'unsent' | 'aborted'
  readonly status: number | undefined
  readonly seconds: number
  readonly retries: number
  readonly remainingQuota?: number
}

/** URL of a request, and the part of it that messages and logs may contain. */
export interface Target {
  readonly url: URL
  /** Path and query without the base and without keys; the query is truncated. */
  readonly shown: string
  /** Returns the keys and credentials of the request, as they are sent. */
  secrets(): readonly string[]
  /** Returns a provider's text as one short line without keys. */
  excerpt(text: string): string
}
