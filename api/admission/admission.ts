import type { Server, ServerResponse } from 'node:http'
import { availableParallelism } from 'node:os'
import type { Redis } from 'ioredis'
import type { Registry as MetricsRegistry } from 'prom-client'
import type { Config } from '../../shared/config/config.ts'
import { openKeyRing } from '../../shared/keys/key-ring.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { createCounter, createGauge, createHistogram, METRICS } from '../../shared/telemetry/metric-list.ts'
import { createToClient, type ToClient } from '../http/client-address.ts'
import { onClose } from '../http/pipelining.ts'
import { createSlowReaders, type MinimumRate, type SlowReaders } from '../http/slow-readers.ts'
import { Problem, toUnavailable } from '../problem/problem.ts'
import { createCounting } from './counting.ts'
import { createFairQueue, type QueueLimits, type QueueMeters } from './fair-queue.ts'
import { createRateLimiter } from './rate-limit.ts'
import { createTurns } from './turns.ts'
import type { ClientKey, FairQueue, RateLimiter, RateLimits, Release, Turns } from './types.ts'

export type {
  Caller,
  ClientKey,
  FairQueue,
  RateDecision,
  RateLimiter,
  RateLimits,
  Release,
  Ticket,
  Turns,
} from './types.ts'

/**
 * Decides for each request whether it is served now, waits or is rejected. A request passes these limits in order:
 *
 * 1. `rateLimiter`: a key or an address has a number of requests in a time; more get 429.
 * 2. `answers`, or `downloads` for long answers: ClickHouse works for a bounded number of requests. The others wait in
 *    a bounded fair queue, or get 503 immediately if they would have to wait too long. `pictures` is the same for
 *    drawing.
 * 3. `compression`: a bounded number of threads compresses. Encodings of cached answers that exist need no turn.
 * 4. `longAnswers`, `statements` and `unreadBytes`: responses that clients have not read are bounded. The slowest reader
 *    is closed in favour of a new response, and any reader below the minimum rate is closed after half a minute.
 *
 * Requests that are not cached, and the chunks of files, take `turns` on the event loop, so that those of one client do
 * not delay others. Answers from the caches pass only the first limit. Every rejection has `Retry-After`. The server itself limits the
 * connections, and the requests that wait behind another one of their connection.
 */
export interface Admission {
  readonly clientKeyOf: ToClient
  /** Undefined if neither keys nor limits are configured. */
  readonly rateLimiter: RateLimiter | undefined
  readonly answers: FairQueue
  readonly downloads: FairQueue
  readonly turns: Turns
  /** Compression of answers in the thread pool. */
  readonly compression: FairQueue
  /** Pictures that are drawn. */
  readonly pictures: FairQueue
  /** Long answers until their clients have read them. */
  readonly longAnswers: ResponseLimit
  /** Long answers that ClickHouse is still writing. */
  readonly statements: ResponseLimit
  /** Bytes of complete answers that were made for a request, until its client has read them. */
  readonly unreadBytes: ResponseLimit
  /** Observes the connections of a server. */
  watch(server: Server): void
}

/** A limited sum of open responses or of their bytes, in total and of one client. */
export interface ResponseLimit {
  /**
   * Counts a response, by default as one, until it closes or is released. Beyond the limit the slowest reader is closed.
   * @throws Problem if none is slow: `rate_limited` for the limit of one client, `unavailable` for the total.
   */
  add(response: ServerResponse, client: ClientKey, amount?: number): Release
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
/**
 * A chunk takes about a millisecond, and a rejection would end a response that has begun, so it may wait
 * long. Each response has at most one waiting chunk.
 */
const COMPRESSION = { maxWaiting: 4096, maxWaitingPerClient: 1024, maxWaitMs: 60_000, maxHeavyWaitMs: 60_000 }
/** Threads of Node's pool that compress; the others read files and resolve names. */
const COMPRESSION_SLOTS = Math.min(3, Math.max(2, availableParallelism() - 1))
/**
 * One thread draws. A client has one slot, so that the next picture is of another client if one waits. The start of the
 * thread counts in the expected wait, so the length of the line bounds it, and not the time.
 */
const PICTURES = { slots: 2, slotsPerClient: 1, maxWaiting: 256, maxWaitMs: 300_000, maxHeavyWaitMs: 300_000 }
/** Each long answer uses memory and possibly a file. One client uses at most half, so that other clients are served. */
const MAX_LONG_ANSWERS = 256
const MAX_LONG_ANSWERS_PER_CLIENT = MAX_LONG_ANSWERS / 2
/**
 * Maximum number of statements of long answers. If disk space is available, a statement ends quickly; if not, it lasts
 * as long as the client reads. 64 slow statements take up to 2.2 GB of ClickHouse's memory, which is about half of its
 * default. The 64 statements also take more than half of the reader's quota of execution time. With 128, other requests
 * could not run. There is no limit per client, because statements are slow only without disk space.
 */
const MAX_STATEMENTS = 64
const MAX_UNREAD_BYTES = 128 * 1024 * 1024

export function createAdmission(options: AdmissionOptions): Admission {
  const { config, log, metrics, limits, minimumRate } = options
  const { maxAnswers: slots, maxDownloads } = config.api
  const clientKeyOf = createToClient(config.api.trustedProxies)
  const metersOf = createMeters(metrics)
  // One client uses at most half of the slots.
  const answers = { slots, slotsPerClient: Math.ceil(slots / 2), maxWaiting: MAX_WAITING_ANSWERS }
  const readers = createSlowReaders(log, minimumRate)
  const { rejected } = metersOf('limits')
  return {
    clientKeyOf,
    rateLimiter: limits && createRateLimiter({ ...limits, clientKeyOf, rejected }),
    answers: createFairQueue(options.queue ?? answers, metersOf('answers')),
    downloads: createFairQueue({ ...DOWNLOADS, slots: maxDownloads }, metersOf('downloads')),
    turns: createTurns(),
    compression: createFairQueue(
      { ...COMPRESSION, slots: COMPRESSION_SLOTS, slotsPerClient: 1 },
      metersOf('compression'),
    ),
    pictures: createFairQueue(PICTURES, metersOf('pictures')),
    longAnswers: createResponseLimit(readers, MAX_LONG_ANSWERS, MAX_LONG_ANSWERS_PER_CLIENT),
    statements: createResponseLimit(readers, MAX_STATEMENTS),
    unreadBytes: createResponseLimit(readers, MAX_UNREAD_BYTES),
    watch: readers.watch,
  }
}

/** `Retry-After` in seconds for a client with its maximum of open responses. */
const RETRY_AFTER = '10'

interface OpenResponse {
  readonly response: ServerResponse
  readonly client: ClientKey
  readonly amount: number
}

/** Creates a limit for the sum of the amounts of open responses, in total and of each client. */
export function createResponseLimit(
  { closeSlowest }: Pick<SlowReaders, 'closeSlowest'>,
  max: number,
  maxPerClient = Number.POSITIVE_INFINITY,
): ResponseLimit {
  const open = new Set<OpenResponse>()
  /** Closes the slowest readers, of one client or of all, until the amount fits. Returns whether it fits. */
  const makeRoom = (more: number, most: number, client?: ClientKey): boolean => {
    const all = [...open].filter((one) => client === undefined || one.client === client)
    if (all.reduce((sum, { amount }) => sum + amount, more) <= most) return true
    const closed = closeSlowest(all.map(({ response }) => response))
    if (closed === undefined) return false
    for (const one of all) if (one.response === closed) open.delete(one)
    return makeRoom(more, most, client)
  }
  return {
    add: (response, client, amount = 1) => {
      // A destroyed response emits no further `close` event.
      if (response.destroyed) return () => {}
      if (!makeRoom(amount, maxPerClient, client)) {
        const detail = 'Too many answers of yours are unread: read them first.'
        throw new Problem('rate_limited', detail, { headers: { 'Retry-After': RETRY_AFTER } })
      }
      if (!makeRoom(amount, max)) throw toUnavailable('Too many answers are unread.')
      const one = { response, client, amount }
      open.add(one)
      const forget = onClose(response, () => void open.delete(one))
      return () => {
        open.delete(one)
        // A response whose answer is made again is counted several times.
        forget()
      }
    },
  }
}

/** Returns the metrics of a queue by its name. */
function createMeters(metrics: MetricsRegistry): (queue: string) => QueueMeters {
  const waiting = createGauge(METRICS.apiWaiting, metrics)
  const waited = createHistogram(METRICS.apiWaited, metrics)
  const rejected = createCounter(METRICS.apiRefused, metrics)
  return (queue) => {
    const [count, time, rejection] = [waiting.labels({ queue }), waited.labels({ queue }), rejected.labels({ queue })]
    return { waiting: count.set.bind(count), waited: time.observe.bind(time), rejected: rejection.inc.bind(rejection) }
  }
}
