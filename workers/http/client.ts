import type { Redis } from 'ioredis'
import type { Config } from '../../shared/config/config.ts'
import { DataError } from '../../shared/errors.ts'
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
import { type NotedAnswer, type StoredAnswers, sinks } from './noted-answers.ts'
import type { Exchange, HttpClient, HttpSettings, ProviderCall } from './types.ts'

export type { NotedAnswer, ShownRequest, StoredAnswers } from './noted-answers.ts'

export type {
  ErrorAnswer,
  ErrorReading,
  Exchange,
  HttpClient,
  HttpRequest,
  HttpSettings,
  ProviderCall,
  Query,
} from './types.ts'

export interface HttpClients {
  open(settings: HttpSettings): HttpClient
}

/** HTTP clients of both queue classes. `history` clients may use only a share of each limit. */
export interface QueueClassClients extends HttpClients {
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
  readonly limitsOf?: QueueClassClients['limitsOf']
  /** Proxies for requests to providers; default none. */
  readonly proxy?: Config['proxy']
  readonly observe?: (call: ProviderCall) => void
  /** Receives every response, including errors. Secrets are not removed. */
  readonly record?: ((exchange: Exchange) => void) | undefined
  /** Answers all requests from stored bodies, without any network. */
  readonly stored?: StoredAnswers
  /** First backoff in milliseconds before jitter, doubled for each retry; default 500. */
  readonly backoffMs?: number
}

/**
 * Creates the clients of all providers. The clients share the rate limits and the quotaExhausted state, so a process
 * creates them once.
 */
export function createHttpClients(options: Options): QueueClassClients {
  const { log, historyShare = 1, sharedBy } = options
  const proxiedFetch = options.proxy && createProxiedFetch(options.proxy)
  const createLimits = (settings: HttpSettings) =>
    createProviderLimits(settings, { historyShare, sharedBy: sharedBy && { ...sharedBy, log } })
  const limitsOf = options.limitsOf ?? perProvider(createLimits)
  const exhaustedOf = perProvider(createExhaustedPlan)
  const toOpen = (share: 'total' | 'history') => (settings: HttpSettings) => {
    const limit = limitsOf(settings)[share]
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

/** Runs `work`, and passes each attempt of a request that it sends to `sink`. */
export const notingAnswers = <T>(sink: (answer: NotedAnswer) => void, work: () => Promise<T>): Promise<T> =>
  sinks.run(sink, work)

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
