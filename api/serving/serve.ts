import type { Admission, ClientKey } from '../admission/admission.ts'
import type { Origin, ResponseCache } from '../cache/cache.ts'
import { chooseFormat, DataChanged, type Format, formatByName } from '../formats/formats.ts'
import { type FlatHeaders, setHeaders } from '../http/headers.ts'
import { chooseEncoding, type Encoding } from '../http/negotiation.ts'
import { onClose } from '../http/pipelining.ts'
import { parseParameters, readQuery } from '../parameters/parse.ts'
import { Problem } from '../problem/problem.ts'
import type { AppContext, ResolvedRequest, Route } from '../route/define-route.ts'
import type { RequestContext } from '../route/request-context.ts'
import {
  ClientDisconnected,
  createDisconnectSignal,
  type DisconnectSignal,
  type ReadScope,
  unqueued,
} from '../single-flight/single-flight.ts'
import type { Compression } from './compression.ts'
import type { Failures } from './failures.ts'
import type { ApiMetrics, RouteMeters } from './observe.ts'
import type { ReadyAnswer } from './ready-answer.ts'
import {
  type LongAnswer,
  type RangedAnswer,
  retryChanged,
  sendReady,
  toHead,
  toReady,
  toStaleHeader,
} from './respond.ts'
import type { SendStream } from './stream.ts'

/** Path parameters of a request. */
type InPath = Readonly<Record<string, string | string[]>>

export interface Serving {
  /** The URLs of the last `most` answered requests, the most recent first. */
  listRecent(most: number): string[]
  /** Sends an answer or a rejection from the caches, before anything is parsed. Returns whether it did. */
  serveCached(context: RequestContext): boolean
  /** Answers a GET or HEAD request for a route, unless its client disconnects first. */
  serve(route: Route, context: RequestContext, inPath: InPath): Promise<void>
  /**
   * Returns the complete answer to an in-process GET request on behalf of a client.
   * @throws Problem, or the signal's reason after it is aborted.
   */
  answer(
    route: Route,
    request: {
      readonly url: string
      readonly client: string
      readonly requestId: string
      /** Parameters in the path of the route. */
      readonly inPath?: InPath
      /** Charges the client if the answer is not cached. */
      readonly charge?: Charge
    },
    signal: AbortSignal,
  ): Promise<{ readonly body: Buffer; readonly headers: FlatHeaders }>
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

/** Parses a request into typed parameters and the format. `inPath` are the path parameters. */
function parse(route: Route, url: string, accept?: string, inPath: InPath = {}) {
  const raw = readQuery(url)
  const format = toFormat(route, accept, raw.values.get('format')?.[0])
  const parts = Object.entries(inPath).filter(([name]) => name in route.query)
  const ofPath = Object.fromEntries(parts.map(([name, value]) => [name, String(value)]))
  return { query: parseParameters(format === 'json' ? route.query : route.tableQuery, raw, ofPath), format }
}

const tooLong = () =>
  new Problem('invalid_parameter', 'The response is too long: request a shorter range or fewer records.')

/**
 * Charges a request for its estimated units, of which the first was counted before.
 * @throws the rejection if the client's limit is used up.
 */
type Charge = (units: number) => Promise<void>

/** An answer, its origin, and whether only this request uses it. */
interface Found {
  readonly answer: ReadyAnswer | LongAnswer
  readonly from: Origin
  readonly isTransient?: boolean
}

/**
 * Creates the charge of a request. A request is charged once, even if its answer is made again because data changed.
 */
function createCharge(context: RequestContext): Charge | undefined {
  const { caller: known } = context
  if (known === undefined) return undefined
  let charged: Promise<void> | undefined
  const chargeOnce = async (units: number) => {
    const { caller, headers, rejection } = await known.charge(units)
    Object.assign(context, { caller, limit: headers })
    if (!context.response.headersSent) setHeaders(context.response, headers)
    if (rejection !== undefined) throw rejection
  }
  return async (units) => {
    if (units > 1) charged ??= chargeOnce(units - 1)
    await charged
  }
}

/** The request that an answer is for. */
interface Asking {
  readonly client: ClientKey
  readonly disconnected: DisconnectSignal
  readonly charge: Charge | undefined
  /** Whether the same request was answered before. */
  readonly isRepeated: boolean
}

/** The result of resolving a request that was served before. Such a request is not parsed again. */
interface KnownRequest {
  readonly route: Route
  readonly key: string
  readonly meters: RouteMeters
  readonly encoding: Encoding
  /** Headers of an alias of the route's path. */
  readonly extra: FlatHeaders
}

/** A request that was rejected before. A rejection depends only on the text of the request and on the registry. */
interface KnownRejection {
  readonly problem: Problem
  readonly meters: RouteMeters
}

/** Maximum number of cached rejections. A rejected request has up to a kilobyte. */
const MAX_REJECTIONS = 2_000

/** Answers that the response cache holds. */
export type CachedAnswer = ReadyAnswer | RangedAnswer

/** The handler of every route: parameters, response cache, conditional requests, encodings, failures, metrics. */
export function createServing(
  appContext: AppContext,
  options: {
    responses: ResponseCache<CachedAnswer, LongAnswer>
    failures: Failures
    metrics: ApiMetrics
    admission: Admission
    compression: Compression
    sendStream: SendStream
  },
): Serving {
  const { now, cache } = appContext
  const { responses, failures, metrics, admission, compression, sendStream } = options
  const { answers: queue, clientKeyOf } = admission
  metrics.keeps('answers', responses.maxBytes, () => responses.bytes)
  // Dashboards know the chunks of series by this label.
  metrics.keeps('pieces', cache.maxBytes, () => cache.bytes)
  metrics.keepsPoints(() => cache.points)
  const knownRequests = responses.createResolvedRequests<KnownRequest>()
  const rejections = responses.createResolvedRequests<KnownRejection>(MAX_REJECTIONS)

  /** Finds the answer in the cache, or makes it: from cached values immediately, else in a slot of the queue. */
  const find = async (route: Route, request: ResolvedRequest, asking: Asking): Promise<Found> => {
    const make = async (scope: ReadScope) => toReady(route, await request.answer(scope, now()))
    const { client, disconnected, isRepeated, charge } = asking
    if (route.volatile) return { answer: await make(unqueued(disconnected())), from: 'made' }
    const { key, registryVersion } = request
    const lookup = { key, registryVersion, datasets: route.datasets, isRepeated }
    const demand = { client: route.isUrgent ? undefined : client, charge: charge && (() => charge(request.cost)) }
    return responses.get({ ...lookup, ...demand }, make, disconnected)
  }

  /** Parses and resolves a request. A rejection is cached: repeating it costs no more than a cached answer. */
  const resolve = (route: Route, context: RequestContext, inPath: InPath): ResolvedRequest => {
    const { url = '', headers } = context.request
    const { version } = appContext.registry
    try {
      const { query, format } = parse(route, url, headers.accept, inPath)
      const around = route.volatile ? { ...appContext, caller: context.caller } : appContext
      return route.resolve(query, format, around)
    } catch (error) {
      if (error instanceof Problem && error.status < 500 && context.extra.length === 0)
        rejections.add(context.request, { problem: error, meters: metrics.of(route.path) }, version)
      throw error
    }
  }

  /** Handles a request: parse, resolve, find the answer, send. */
  const attempt = async (route: Route, context: RequestContext, inPath: InPath, asking: Asking) => {
    const { headers } = context.request
    const { client, disconnected, charge } = asking
    const resolved = resolve(route, context, inPath)
    if (resolved.connect !== undefined) return resolved.connect(context)
    const { answer, from, isTransient } = await find(route, resolved, asking)
    metrics.of(route.path).answered(from)
    if (!('body' in answer)) {
      const head = toHead(route, answer)
      const charged = charge && (() => charge(resolved.cost))
      try {
        return await sendStream(context, client, answer, head, now(), disconnected(), charged)
      } catch (error) {
        if (error instanceof DataChanged) responses.drop(resolved.key)
        throw error
      }
    }
    const { body } = answer
    // After `close` the body has been sent or its client has disconnected, so the buffer is no longer in use.
    if (isTransient === true && Buffer.isBuffer(body)) onClose(context.response, () => cache.buffers.release(body))
    // Other clients of the same answer share its bytes.
    const onSend =
      from === 'made'
        ? (bytes: Buffer) => void admission.unreadBytes.add(context.response, client, bytes.length)
        : undefined
    // Answers of volatile routes are never cached.
    if (!route.volatile) {
      const encoding = chooseEncoding(headers['accept-encoding'])
      const known = { route, key: resolved.key, meters: metrics.of(route.path), encoding, extra: context.extra }
      knownRequests.add(context.request, known, resolved.registryVersion)
    }
    const sent = isTransient === true ? { ...answer, isTransient } : answer
    await sendReady(context, sent, { now: now(), from, compression, ...(onSend && { onSend }) })
  }

  return {
    listRecent: knownRequests.listRecent,
    serve: async (route, context, inPath) => {
      const { request, response } = context
      const client = clientKeyOf(request)
      // An answer that was served before may be cached, or another request may be making it.
      const isRepeated = knownRequests.find(request) !== undefined
      if (!isRepeated && !route.volatile && !route.isUrgent) queue.rejectEarly(client)
      const disconnected = createDisconnectSignal(response)
      const asking = { client, disconnected, charge: createCharge(context), isRepeated }
      const work = () => attempt(route, context, inPath, asking)
      await retryChanged(() => response.headersSent, work).catch((error: unknown) => {
        if (!(error instanceof ClientDisconnected)) throw error
      })
    },
    answer: async (route, { url, client, requestId, inPath, charge }, signal) => {
      try {
        const { query, format } = parse(route, url, undefined, inPath)
        const asking = { client, disconnected: () => signal, charge, isRepeated: false }
        const work = () => find(route, route.resolve(query, format, appContext), asking)
        const { answer, from } = await retryChanged(() => false, work)
        metrics.of(route.path).answered(from)
        if (!('body' in answer)) throw tooLong()
        const body = Buffer.isBuffer(answer.body) ? answer.body : answer.body.toText()
        return { body, headers: [...answer.head.headers, ...toStaleHeader(answer.head, now())] }
      } catch (error) {
        throw signal.aborted ? error : failures.toProblem(requestId, error)
      }
    },
    serveCached: (context) => {
      const { method, headers } = context.request
      // Range requests and preconditions may fail, and only `serve` reports failures.
      if (headers.range !== undefined || headers['if-match'] !== undefined) return false
      if (method !== 'GET' && method !== 'HEAD') return false
      const known = knownRequests.find(context.request)
      if (known === undefined) {
        const rejected = rejections.find(context.request)
        if (rejected === undefined) return false
        setHeaders(context.response, context.limit ?? [])
        failures.respond(context, rejected.problem)
        rejected.meters.servedFromCache(rejected.problem.status, context.startedAt)
        return true
      }
      const at = now()
      const answer = responses.find(known.key, known.route.datasets, at)
      if (answer === undefined || !('body' in answer)) return false
      // Counted now and not at the response's end: a listener would cost more than finding the bytes.
      const count = () => known.meters.servedFromCache(context.response.statusCode, context.startedAt)
      const sending = sendReady({ ...context, extra: known.extra }, answer, {
        now: at,
        from: 'cache',
        compression,
        encoding: known.encoding,
      })
      if (sending === undefined) count()
      else
        sending.then(count).catch((error: unknown) => {
          if (!(error instanceof ClientDisconnected)) failures.respond(context, error)
        })
      return true
    },
  }
}
