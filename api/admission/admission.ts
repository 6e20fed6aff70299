import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Redis } from 'ioredis'
import type { Registry as MetricsRegistry } from 'prom-client'
import type { Config } from '../../shared/config/config.ts'
import type { Allowance } from '../../shared/keys/allowance.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { createCounter, createGauge, createHistogram, METRICS } from '../../shared/telemetry/metric-list.ts'
import { createToClient, type ToClient } from '../http/client-address.ts'
import type { FlatHeaders } from '../http/headers.ts'
import { type Counting, createCounting } from './counting.ts'
import { createFairQueue } from './fair-queue.ts'
import { type Holder, type KeyRing, openKeyRing } from './key-ring.ts'
import { createByteBudget, createResponseLimit, createSlowReaders, type MinimumRate } from './open-responses.ts'
import { createPipelining } from './pipelining.ts'
import { createRateLimiter } from './rate-limit.ts'

/**
 * Decides for each request whether it is served now, waits or is rejected. A request passes these limits in order:
 *
 * 1. `pipelining`: a connection has one request in progress. The requests behind it wait in bounded memory.
 * 2. `rateLimiter`: a key or an address has a number of requests in a time; more get 429.
 * 3. `answers`, or `downloads` for long answers: ClickHouse works for a bounded number of requests. The others wait in a
 *    bounded fair queue, or get 503 at once if they would have to wait too long.
 * 4. `longAnswers`, `statements` and `unreadBytes`: responses that clients have not read are bounded. The slowest reader
 *    is closed in favour of a new response, and any reader below the minimum rate is closed after half a minute.
 *
 * Answers from the caches pass only the first two limits. Every rejection has `Retry-After`.
 */
export interface Admission {
  readonly clientKeyOf: ToClient
  /** Undefined if neither keys nor limits are configured. */
  readonly rateLimiter: RateLimiter | undefined
  readonly answers: FairQueue
  readonly downloads: FairQueue
  /** Long answers until their clients have read them. */
  readonly longAnswers: ResponseLimit
  /** Long answers that ClickHouse is still writing. */
  readonly statements: ResponseLimit
  /** New complete answers until their clients have read them. */
  readonly unreadBytes: ByteBudget
  readonly pipelining: Pipelining
  /** Observes the connections of a server. */
  watch(server: Server): void
}

/** Identifies a client: its address, or its network for IPv6. */
export type ClientKey = string

/** Releases a slot. Repeated calls have no effect. */
export type Release = () => void

/** A request for a slot of a queue. */
export interface Ticket {
  /** Resolves when a slot is assigned. Rejects when the queue rejects the request, or with the reason of its signal. */
  readonly turn: Promise<Release>
  /** Another client requests the same work: the request takes the better of the two positions. */
  alsoFor(client: ClientKey): void
}

/** A limited number of slots, with one bounded line per client. The clients take turns. */
export interface FairQueue {
  /**
   * Rejects a request of a heavy client that `enter` would reject, before its parameters are parsed. A client is heavy if
   * many of its requests waited during all of the last second. Requests of other clients may be answered from the caches.
   * @throws Problem `unavailable`
   */
  rejectEarly(client: ClientKey): void
  /**
   * Requests a slot. If the signal is aborted before its turn, the request leaves the queue at once.
   * @throws Problem `unavailable` if the request would have to wait too long, or the reason of an aborted signal.
   */
  enter(client: ClientKey, signal: AbortSignal): Ticket
}

export interface QueueLimits {
  /** Maximum of concurrent work, in total and of one client. Default of the latter: all slots. */
  readonly slots: number
  readonly slotsPerClient?: number
  /** Maximum of waiting requests, in total and of one client. */
  readonly maxWaiting: number
  readonly maxWaitingPerClient?: number
  /** A request with a longer expected wait is rejected; the shorter limit is for heavy clients. */
  readonly maxWaitMs?: number
  readonly maxHeavyWaitMs?: number
  /** A monotonic clock in milliseconds. */
  readonly clock: () => number
}

/** Receives the measurements of a queue. */
export interface QueueMeters {
  waiting(count: number): void
  waited(seconds: number): void
  rejected(): void
}

/** A limited number of open responses, in total and of one client. */
export interface ResponseLimit {
  /**
   * Closes the slowest reader if the limit is reached.
   * @throws Problem if none is slow: `rate_limited` for the limit of one client, `unavailable` for the total.
   */
  add(response: ServerResponse, client: ClientKey): void
  remove(response: ServerResponse): void
}

/** A memory budget for complete answers. */
export interface ByteBudget {
  /**
   * Counts an answer's bytes until its response closes. Bytes shared by several responses count once. Beyond the budget
   * the slowest reader is closed.
   * @throws Problem `unavailable` if none is slow.
   */
  add(response: ServerResponse, body: Buffer): void
}

/** Serializes the requests of each connection. */
export interface Pipelining {
  /**
   * Calls `answer` after the earlier responses of the connection have ended; never if the connection closes first.
   */
  take(
    request: IncomingMessage,
    response: ServerResponse,
    answer: (request: IncomingMessage, response: ServerResponse) => void,
  ): void
  /** Stops reading a connection, and ends it after the requests read so far are answered. */
  endAfterAnswers(socket: Duplex, end: () => void): void
}

export interface RateLimiter {
  /**
   * Counts a request and decides whether it may proceed. Calls `then` synchronously if no limit applies, else after
   * counting.
   */
  count(request: IncomingMessage, then: (decision: RateDecision) => void): void
}

/** The decision whether a request may proceed, and the limit's headers for its answer. */
export interface RateDecision {
  readonly caller: Caller | undefined
  readonly headers: FlatHeaders
  /** The error if the request is rejected. */
  readonly rejection?: unknown
}

/** The client of a request and its limit. */
export interface Caller {
  /** Holder of the request's key; undefined without a key. */
  readonly holder: Holder | undefined
  readonly allowance: Allowance
  /** State of the caller's window after this request. */
  readonly standing: { readonly isWithin: boolean; readonly remaining: number; readonly resetMs: number }
  /** Counts an additional request that another request of the caller requires. */
  charge(): Promise<RateDecision>
}

export interface RateLimits {
  readonly keys: KeyRing | undefined
  /** Allowance of an address without a key; undefined means unlimited. */
  readonly anonymous: Allowance | undefined
  readonly counting: Counting
}

/** Reads the file of keys, and counts requests over all processes through Redis. */
export function openRateLimits(
  { keysFile, anonymous }: Config['api']['limits'],
  { redis, prefix, log }: { redis: Redis; prefix: string; log: Logger },
): RateLimits & { close(): void } {
  const keys = keysFile === undefined ? undefined : openKeyRing(keysFile, log)
  return { keys, anonymous, counting: createCounting(redis, prefix), close: () => keys?.close() }
}

export interface AdmissionOptions {
  readonly config: Config
  readonly log: Logger
  readonly metrics: MetricsRegistry
  readonly limits?: RateLimits
  /** Limits of `answers`. Tests may replace them. */
  readonly queue?: QueueLimits
  /** Minimum reading rate of clients. Tests may shorten its interval. */
  readonly minimumRate?: MinimumRate
}

/** Four pages with a hundred charts each. */
const MAX_WAITING_ANSWERS = 512
/**
 * A long answer uses one core of the database while it is written. Few run concurrently, so that short answers need not
 * wait. Clients of long answers tolerate a longer wait.
 */
const DOWNLOADS = { maxWaiting: 256, maxWaitMs: 30_000, maxHeavyWaitMs: 15_000 }
/** Each long answer holds memory and possibly a file. One client uses at most half, so that others find free places. */
const MAX_LONG_ANSWERS = 256
const MAX_LONG_ANSWERS_PER_CLIENT = MAX_LONG_ANSWERS / 2
/**
 * With disk space a statement ends quickly, else it lasts as long as the client reads. 64 slow statements take up to 2.2
 * GB of ClickHouse's memory, about half of its default, and more than half of the reader's quota of execution time. The
 * rest suffices for all other requests; 128 statements would not leave enough. Statements have no limit per client: they
 * are as slow as their clients only without disk space, and 64 slow readers of one address are then served like any
 * others.
 */
const MAX_STATEMENTS = 64
const MAX_UNREAD_BYTES = 128 * 1024 * 1024

export function createAdmission(options: AdmissionOptions): Admission {
  const { config, log, metrics, limits, minimumRate } = options
  const { maxAnswers: slots, maxDownloads } = config.api
  const clientKeyOf = createToClient(config.api.trustedProxies)
  const meters = createMeters(metrics)
  const clock = () => performance.now()
  // Half of the slots stay free for other clients.
  const answers = { slots, slotsPerClient: Math.ceil(slots / 2), maxWaiting: MAX_WAITING_ANSWERS, clock }
  const readers = createSlowReaders(log, minimumRate)
  const { watch: watchPipelining, ...pipelining } = createPipelining()
  const { rejected } = meters('limits')
  return {
    clientKeyOf,
    rateLimiter: limits && createRateLimiter({ ...limits, clientKeyOf, rejected }),
    answers: createFairQueue(options.queue ?? answers, meters('answers')),
    downloads: createFairQueue({ ...DOWNLOADS, slots: maxDownloads, clock }, meters('downloads')),
    longAnswers: createResponseLimit(readers, MAX_LONG_ANSWERS, MAX_LONG_ANSWERS_PER_CLIENT),
    statements: createResponseLimit(readers, MAX_STATEMENTS),
    unreadBytes: createByteBudget(readers, MAX_UNREAD_BYTES),
    pipelining,
    watch: (server) => {
      watchPipelining(server)
      readers.watch(server)
    },
  }
}

/** Returns the metrics of a queue by its name. */
function createMeters(metrics: MetricsRegistry): (queue: string) => QueueMeters {
  const waiting = createGauge(METRICS.apiWaiting, metrics)
  const waited = createHistogram(METRICS.apiWaited, metrics)
  const rejected = createCounter(METRICS.apiRefused, metrics)
  return (queue) => {
    const [inLine, times, rejections] = [
      waiting.labels({ queue }),
      waited.labels({ queue }),
      rejected.labels({ queue }),
    ]
    return {
      waiting: (count) => inLine.set(count),
      waited: (seconds) => times.observe(seconds),
      rejected: () => rejections.inc(),
    }
  }
}
