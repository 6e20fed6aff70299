import type { Redis } from 'ioredis'
import type { Config } from '../../shared/config/config.ts'
import { DataError, type ErrorCode } from '../../shared/errors.ts'
import { createProxiedFetch } from '../../shared/proxied-fetch.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { BodyTooLarge } from './attempt.ts'
import { createCaller, createExhaustedPlan, toBackoffMs, toHeaders } from './call.ts'
import {
  createDayCounter,
  createProviderLimits,
  type ProviderLimits,
  type SharedBy,
  sleep,
  toDayKey,
} from './limits.ts'

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

export interface HttpClients {
  open(settings: HttpSettings): HttpClient
}

/** HTTP clients of both queue classes. `history` clients may use only a share of each limit. */
export interface LaneClients extends HttpClients {
  readonly history: HttpClients
  /** Returns the limits of a provider; other clients may be created with them. */
  readonly limitsOf: (settings: HttpSettings) => ProviderLimits
}

interface Options {
  readonly log: Logger
  /** The Redis through which all processes share the limits; default: limits of this process only. */
  readonly sharedBy?: Omit<SharedBy, 'log'>
  /** Share of each limit that history may use, greater than 0 and at most 1; default 1. */
  readonly historyShare?: number
  /** Replaces the limits, and with them `sharedBy` and `historyShare`. */
  readonly limitsOf?: LaneClients['limitsOf']
  /** Proxies for requests to providers; default none. */
  readonly proxy?: Config['proxy']
  readonly observe?: (call: ProviderCall) => void
  /** Receives every response, including errors. Secrets are not removed. */
  readonly record?: ((exchange: Exchange) => void) | undefined
  /** First backoff in milliseconds before jitter, doubled for each retry; default 500. */
  readonly backoffMs?: number
}

/**
 * Creates the clients of all providers. They share the rate limits and the quotaExhausted state, so a process creates
 * them once.
 */
export function createHttpClients(options: Options): LaneClients {
  const { log, historyShare = 1, sharedBy } = options
  const proxiedFetch = options.proxy && createProxiedFetch(options.proxy)
  const createLimits = (settings: HttpSettings) =>
    createProviderLimits(settings, { historyShare, sharedBy: sharedBy && { ...sharedBy, log } })
  const limitsOf = options.limitsOf ?? perProvider(createLimits)
  const exhaustedOf = perProvider(createExhaustedPlan)
  const toOpen = (lane: 'total' | 'history') => (settings: HttpSettings) => {
    const limit = limitsOf(settings)[lane]
    toHeaders(settings.provider, settings.headers)
    return createCaller(settings, { limit, exhausted: exhaustedOf(settings), proxiedFetch }, options)
  }
  return { open: toOpen('total'), history: { open: toOpen('history') }, limitsOf }
}

/** Creates one value per provider name. */
function perProvider<T>(create: (settings: HttpSettings) => T): (settings: HttpSettings) => T {
  const values = new Map<string, T>()
  return (settings) => {
    const value = values.get(settings.provider) ?? create(settings)
    values.set(settings.provider, value)
    return value
  }
}

/** Returns whether a request failed because its response was over the size limit. */
export const isTooLarge = (error: unknown): boolean => error instanceof DataError && error.cause instanceof BodyTooLarge

/** Waits before a retry; rejects with the signal's reason if it is aborted first. */
export const backOff = (baseMs: number, retry: number, signal: AbortSignal): Promise<void> =>
  sleep(toBackoffMs(baseMs, retry, Math.random()), signal)

/**
 * Returns the billed requests of all processes on the UTC day of `now` (Unix milliseconds). Rejects while Redis is
 * unavailable.
 */
export async function readTakenOfDay(
  redis: Redis,
  prefix: string,
  { provider, now }: { readonly provider: string; readonly now: number },
): Promise<number> {
  const taken = await createDayCounter(redis, prefix, 1).get(toDayKey(provider, now))
  return taken?.consumedPoints ?? 0
}
