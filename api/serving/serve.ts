import type { Logger } from '../../shared/telemetry/log.ts'
import type { Admission, ClientKey } from '../admission/admission.ts'
import { DataChanged } from '../answers/answer.ts'
import { chooseFormat, type Format, formatByName } from '../answers/formats.ts'
import { createResolvedRequests, createResponseCache, type Origin } from '../cache/responses.ts'
import { ClientDisconnected, createDisconnectSignal, type DisconnectSignal } from '../cache/single-flight.ts'
import { breakOff } from '../http/break-off.ts'
import type { FlatHeaders } from '../http/headers.ts'
import { chooseEncoding, type Encoding } from '../http/negotiation.ts'
import { parseParameters, type RawParameters, readQuery } from '../parameters/parse.ts'
import { Problem, toProblem, toUnavailable } from '../problem/problem.ts'
import type { AppContext, Route } from '../route/define-route.ts'
import type { RequestContext } from '../route/request-context.ts'
import type { ApiMetrics, RouteMeters } from './observe.ts'
import {
  type LongAnswer,
  type ReadyAnswer,
  sendProblem,
  sendReady,
  toBytes,
  toHead,
  toReady,
  toStaleHeader,
} from './respond.ts'
import type { SendStream } from './stream.ts'

/** Path parameters of a request. */
type InPath = Readonly<Record<string, string | string[]>>

export interface Serving {
  /** Answers from the response cache, before anything is parsed. Returns whether it did. */
  serveCached(context: RequestContext): boolean
  /** Answers a GET or HEAD request for a route, unless its client disconnects first. */
  serve(route: Route, context: RequestContext, inPath: InPath): Promise<void>
  /**
   * Returns the complete answer to an in-process GET request on behalf of a client.
   * @throws Problem, or the signal's reason after it is aborted.
   */
  answer(
    route: Route,
    request: { readonly url: string; readonly client: string; readonly requestId: string },
    signal: AbortSignal,
  ): Promise<{ readonly body: Buffer; readonly headers: FlatHeaders }>
  /** Answers with a failure. Failures of the service itself are logged. */
  fail(context: RequestContext, error: unknown): void
}

/**
 * The format of an answer. The `format` parameter wins over `Accept`; its value is validated with the other parameters.
 * @throws Problem `not_acceptable`
 */
function toFormat(route: Route, accept: string | undefined, named: string | undefined): Format {
  if (route.record !== undefined) return named === undefined ? chooseFormat(accept) : (formatByName(named) ?? 'json')
  if (route.accepts(accept)) return 'json'
  throw new Problem('not_acceptable', `This path answers with ${route.mediaType} only.`, { allowed: [route.mediaType] })
}

/** Parses a request into typed parameters and the format. */
function parse(route: Route, accept: string | undefined, raw: RawParameters, inPath: InPath) {
  const named = raw.values.get('format')?.[0]
  const format = toFormat(route, accept, named)
  const parts = Object.entries(inPath).filter(([name]) => name in route.query)
  const ofPath = Object.fromEntries(parts.map(([name, value]) => [name, String(value)]))
  const query = parseParameters(format === 'json' ? route.query : route.tableQuery, raw, ofPath)
  return { query, format, isNamed: named !== undefined }
}

/** Whether a request is rejected because the service is busy or stopping. Such rejections are no failures. */
const isRejection = (error: unknown): error is Problem =>
  error instanceof Problem && error.status >= 500 && error.particulars.cause === undefined

const REFUSAL_LOG_MS = 1_000

/** Logs rejections, at most one line per second: a line for each would cost more than the rejection. */
export function createRejectionLog(log: Logger) {
  let loggedAt = Number.NEGATIVE_INFINITY
  let unlogged = 0
  return {
    note: (fields: object, reason: string) => {
      unlogged += 1
      if (performance.now() - loggedAt < REFUSAL_LOG_MS) return
      log.warn({ ...fields, reason, refused: unlogged }, 'refused')
      loggedAt = performance.now()
      unlogged = 0
    },
  }
}

/** Converts an error to the problem for the client. Failures of the service itself are logged. */
function createProblemLogger(log: Logger) {
  const rejections = createRejectionLog(log)
  return (requestId: string, error: unknown): Problem => {
    const problem = toProblem(error)
    const fields = { requestId, code: problem.code }
    if (isRejection(error)) rejections.note(fields, error.message)
    else if (problem.status >= 500) log.error({ ...fields, err: error }, 'failed')
    return problem
  }
}

function createFail(
  log: Logger,
  publicUrl: string,
  logProblem: ReturnType<typeof createProblemLogger>,
): Serving['fail'] {
  return (context, error) => {
    if (context.response.headersSent || context.response.destroyed) {
      breakOff(context.response)
      log.warn({ requestId: context.requestId, err: error }, 'response aborted after its headers were sent')
      return
    }
    sendProblem(context, logProblem(context.requestId, error), publicUrl)
  }
}

const tooLong = () =>
  new Problem('invalid_parameter', 'The response is too long: request a shorter range or fewer records.')

/** Maximum attempts for an answer whose data changes each time while it is read. */
const MOST_TRIES = 5

/** Makes an answer again if its data changed before any of it was sent. */
async function retryChanged<T>(isSent: () => boolean, work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof DataChanged) || isSent()) throw error
      if (tries === MOST_TRIES) throw toUnavailable('The data is changing at the moment.', error)
    }
  }
}

/** An answer, its origin, and whether only this request uses it. */
interface Found {
  readonly answer: ReadyAnswer | LongAnswer
  readonly from: Origin
  readonly isTransient?: boolean
}

/** The result of parsing and resolving a request. */
interface Resolved {
  readonly route: Route
  /** The cache key of the answer. */
  readonly key: string
  readonly meters: RouteMeters
  /** The encoding that the client prefers. */
  readonly encoding: Encoding
}

/** The handler of every route: parameters, response cache, conditional requests, encodings, failures, metrics. */
export function createServing(
  appContext: AppContext,
  options: {
    log: Logger
    metrics: ApiMetrics
    cacheBytes: number
    admission: Admission
    sendStream: SendStream
  },
): Serving {
  const { now, config, changeFeed, chunks } = appContext
  const { metrics, log, cacheBytes, admission, sendStream } = options
  const { answers: queue, clientKeyOf } = admission
  const logProblem = createProblemLogger(log)
  const onRenewalFailed = (error: unknown) => {
    if (!isRejection(error)) log.warn({ err: error }, 'stale answer could not be renewed')
  }
  const registryVersion = () => appContext.registry.version
  const cache = createResponseCache<ReadyAnswer, LongAnswer>({
    maxBytes: cacheBytes,
    changeFeed,
    registryVersion,
    queue,
    now,
    onRenewalFailed,
  })
  metrics.keeps('answers', cacheBytes, () => cache.bytes)
  metrics.keeps('pieces', chunks.maxBytes, () => chunks.bytes)
  const resolvedRequests = createResolvedRequests<Resolved>(registryVersion)
  const fail = createFail(log, config.api.publicUrl, logProblem)

  /** Returns an answer from the cache or from cached chunks. Such requests skip the queue. */
  const findReady = async (route: Route, settled: ReturnType<Route['resolve']>) => {
    const at = now()
    const { datasets } = route
    const cached = cache.find(settled.key, datasets, at)
    if (cached !== undefined) return { answer: cached, from: 'cache' as const }
    const made = await settled.peek(at)
    if (made === undefined) return undefined
    const answer = toReady(route, made)
    const isTransient =
      'body' in answer && !cache.offer({ key: settled.key, registryVersion: settled.basis, datasets }, answer)
    return { answer, from: 'made' as const, isTransient }
  }

  /** Finds an answer in the caches or makes it. */
  const find = async (
    route: Route,
    settled: ReturnType<Route['resolve']>,
    client: ClientKey,
    disconnected: DisconnectSignal,
  ) => {
    const make = async (abandoned: AbortSignal) => toReady(route, await settled.answer(abandoned, now()))
    const { key, basis } = settled
    const lookup = {
      key,
      registryVersion: basis,
      datasets: route.datasets,
      client: route.isUrgent ? undefined : client,
    }
    const found: Found = route.volatile
      ? { answer: await make(disconnected()), from: 'made' as const }
      : ((await findReady(route, settled)) ?? (await cache.get(lookup, make, disconnected)))
    metrics.of(route.path).answered(found.from)
    return found
  }

  /** Handles a request: parse, resolve, find the answer, send. */
  const serveAttempt = async (
    route: Route,
    context: RequestContext,
    inPath: InPath,
    client: ClientKey,
    disconnected: DisconnectSignal,
  ): Promise<void> => {
    const { url = '', headers } = context.request
    const parsed = parse(route, headers.accept, readQuery(url), inPath)
    const around = route.volatile ? { ...appContext, caller: context.caller } : appContext
    const settled = route.resolve(parsed.query, parsed.format, around)
    if (settled.connect !== undefined) return settled.connect(context)
    const { answer, from, isTransient } = await find(route, settled, client, disconnected)
    if (!('body' in answer)) return sendStream(context, client, answer, toHead(route, answer), now(), disconnected())
    const { body } = answer
    // After `close` the body has been sent or its client has disconnected, so the buffer is no longer in use.
    if (isTransient === true && Buffer.isBuffer(body))
      context.response.once('close', () => chunks.buffers.release(body))
    const onSend = from === 'cache' ? undefined : (bytes: Buffer) => admission.unreadBytes.add(context.response, bytes)
    // Answers of volatile routes are never cached.
    if (context.extra.length === 0 && !route.volatile) {
      const encoding = chooseEncoding(headers['accept-encoding'])
      const resolved = { route, key: settled.key, meters: metrics.of(route.path), encoding }
      resolvedRequests.add(context.request, resolved, settled.basis)
    }
    await sendReady(context, answer, { now: now(), from, ...(onSend && { onSend }) })
  }

  return {
    serve: async (route, context, inPath) => {
      const { request, response } = context
      const client = clientKeyOf(request)
      // An answer that was served before may be cached, or another request may be making it.
      const isResolved = resolvedRequests.find(request) !== undefined
      if (!isResolved && !route.volatile && !route.isUrgent) queue.rejectEarly(client)
      const disconnected = createDisconnectSignal(response)
      const work = () => serveAttempt(route, context, inPath, client, disconnected)
      await retryChanged(() => response.headersSent, work).catch((error: unknown) => {
        if (!(error instanceof ClientDisconnected)) throw error
      })
    },
    answer: async (route, { url, client, requestId }, signal) => {
      try {
        const { query, format } = parse(route, undefined, readQuery(url), {})
        const attempt = () => find(route, route.resolve(query, format, appContext), client, () => signal)
        const { answer } = await retryChanged(() => false, attempt)
        if (!('body' in answer)) throw tooLong()
        const body = await toBytes(answer.body, 'identity')
        return { body, headers: [...answer.head.headers, ...toStaleHeader(answer.head, now())] }
      } catch (error) {
        throw signal.aborted ? error : logProblem(requestId, error)
      }
    },
    serveCached: (context) => {
      const { method, headers } = context.request
      // Range requests and preconditions may fail, and only `serve` reports failures.
      if (headers.range !== undefined || headers['if-match'] !== undefined) return false
      if (method !== 'GET' && method !== 'HEAD') return false
      const resolved = resolvedRequests.find(context.request)
      if (resolved === undefined) return false
      const at = now()
      const answer = cache.find(resolved.key, resolved.route.datasets, at)
      if (answer === undefined) return false
      // Counted now and not at the response's end: a listener would cost more than finding the bytes.
      const count = () => resolved.meters.servedFromCache(context.response.statusCode, context.startedAt)
      const sending = sendReady(context, answer, { now: at, from: 'cache', encoding: resolved.encoding })
      if (sending === undefined) count()
      else sending.then(count).catch((error: unknown) => fail(context, error))
      return true
    },
    fail,
  }
}
