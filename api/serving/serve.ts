import type { Admission, ClientKey } from '../admission/admission.ts'
import { createResolvedRequests, createResponseCache, type Origin } from '../cache/responses.ts'
import { ClientDisconnected, createDisconnectSignal, type DisconnectSignal } from '../cache/single-flight.ts'
import { chooseFormat, DataChanged, type Format, formatByName } from '../formats/formats.ts'
import { type FlatHeaders, setHeaders } from '../http/headers.ts'
import { chooseEncoding, type Encoding } from '../http/negotiation.ts'
import { parseParameters, readQuery } from '../parameters/parse.ts'
import { Problem } from '../problem/problem.ts'
import type { AppContext, ResolvedRequest, Route } from '../route/define-route.ts'
import type { RequestContext } from '../route/request-context.ts'
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

/** Creates the charge of a request. It is charged once, even if its answer is made again because data changed. */
function createCharge(context: RequestContext): Charge {
  let isCharged = false
  return async (units) => {
    if (isCharged || units <= 1 || context.caller === undefined) return
    isCharged = true
    const { caller, headers, rejection } = await context.caller.charge(units - 1)
    Object.assign(context, { caller, limit: headers })
    if (!context.response.headersSent) setHeaders(context.response, headers)
    if (rejection !== undefined) throw rejection
  }
}

/** The result of resolving a request that was served before. Such a request is not parsed again. */
interface KnownRequest {
  readonly route: Route
  readonly key: string
  readonly meters: RouteMeters
  readonly encoding: Encoding
}

/** A request that was rejected before. It depends only on its text and on the registry. */
interface KnownRejection {
  readonly problem: Problem
  readonly meters: RouteMeters
}

/** Maximum number of cached rejections. A rejected request has up to a kilobyte. */
const MAX_REJECTIONS = 2_000

/** The handler of every route: parameters, response cache, conditional requests, encodings, failures, metrics. */
export function createServing(
  appContext: AppContext,
  options: {
    failures: Failures
    metrics: ApiMetrics
    cacheBytes: number
    admission: Admission
    compression: Compression
    sendStream: SendStream
  },
): Serving {
  const { now, changeFeed, chunks } = appContext
  const { failures, metrics, cacheBytes, admission, compression, sendStream } = options
  const { answers: queue, clientKeyOf } = admission
  const currentVersion = () => appContext.registry.version
  const cache = createResponseCache<ReadyAnswer | RangedAnswer, LongAnswer>({
    maxBytes: cacheBytes,
    changeFeed,
    registryVersion: currentVersion,
    queue,
    now,
    onRenewalFailed: failures.noteRenewal,
  })
  metrics.keeps('answers', cacheBytes, () => cache.bytes)
  metrics.keeps('pieces', chunks.maxBytes, () => chunks.bytes)
  metrics.keepsPoints(() => chunks.points)
  const knownRequests = createResolvedRequests<KnownRequest>(currentVersion)
  const rejections = createResolvedRequests<KnownRejection>(currentVersion, MAX_REJECTIONS)

  /** Finds the answer in the cache, assembles it from cached chunks, or makes it. Only the last one waits in the queue. */
  const find = async (
    route: Route,
    request: ResolvedRequest,
    client: ClientKey,
    disconnected: DisconnectSignal,
    charge?: Charge,
  ): Promise<Found> => {
    const { key, registryVersion } = request
    const { datasets } = route
    const make = async (abandoned: AbortSignal) => toReady(route, await request.answer(abandoned, now()))
    if (route.volatile) return { answer: await make(disconnected()), from: 'made' }
    const at = now()
    const cached = cache.find(key, datasets, at)
    if (cached !== undefined) return { answer: cached, from: 'cache' }
    const assembled = await request.peek(at)
    if (assembled === undefined) {
      await charge?.(request.cost)
      const lookup = { key, registryVersion, datasets, client: route.isUrgent ? undefined : client }
      return cache.get(lookup, make, disconnected)
    }
    const answer = toReady(route, assembled)
    const isTransient = 'body' in answer && !cache.offer({ key, registryVersion, datasets }, answer)
    return { answer, from: 'made', isTransient }
  }

  /** Parses and resolves a request. A rejection is cached: repeating it costs no more than a cached answer. */
  const resolve = (route: Route, context: RequestContext, inPath: InPath): ResolvedRequest => {
    const { url = '', headers } = context.request
    const version = currentVersion()
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
  const attempt = async (
    route: Route,
    context: RequestContext,
    inPath: InPath,
    { disconnected, charge }: { readonly disconnected: DisconnectSignal; readonly charge: Charge },
  ) => {
    const { headers } = context.request
    const client = clientKeyOf(context.request)
    const resolved = resolve(route, context, inPath)
    if (resolved.connect !== undefined) return resolved.connect(context)
    const { answer, from, isTransient } = await find(route, resolved, client, disconnected, charge)
    metrics.of(route.path).answered(from)
    if (!('body' in answer)) {
      const head = toHead(route, answer)
      const charged = () => charge(resolved.cost)
      try {
        return await sendStream(context, client, answer, head, now(), disconnected(), charged)
      } catch (error) {
        if (error instanceof DataChanged) cache.drop(resolved.key)
        throw error
      }
    }
    const { body } = answer
    // After `close` the body has been sent or its client has disconnected, so the buffer is no longer in use.
    if (isTransient === true && Buffer.isBuffer(body))
      context.response.once('close', () => chunks.buffers.release(body))
    // Other clients of the same answer share its bytes.
    const onSend =
      from === 'made'
        ? (bytes: Buffer) => void admission.unreadBytes.add(context.response, client, bytes.length)
        : undefined
    // Answers of volatile routes are never cached.
    if (context.extra.length === 0 && !route.volatile) {
      const encoding = chooseEncoding(headers['accept-encoding'])
      const known = { route, key: resolved.key, meters: metrics.of(route.path), encoding }
      knownRequests.add(context.request, known, resolved.registryVersion)
    }
    const sent = isTransient === true ? { ...answer, isTransient } : answer
    await sendReady(context, sent, { now: now(), from, compression, ...(onSend && { onSend }) })
  }

  return {
    listRecent: knownRequests.listRecent,
    serve: async (route, context, inPath) => {
      const { request, response } = context
      // An answer that was served before may be cached, or another request may be making it.
      const isKnown = knownRequests.find(request) !== undefined
      if (!isKnown && !route.volatile && !route.isUrgent) queue.rejectEarly(clientKeyOf(request))
      const disconnected = createDisconnectSignal(response)
      const charge = createCharge(context)
      const work = () => attempt(route, context, inPath, { disconnected, charge })
      await retryChanged(() => response.headersSent, work).catch((error: unknown) => {
        if (!(error instanceof ClientDisconnected)) throw error
      })
    },
    answer: async (route, { url, client, requestId, inPath, charge }, signal) => {
      try {
        const { query, format } = parse(route, url, undefined, inPath)
        const work = () => find(route, route.resolve(query, format, appContext), client, () => signal, charge)
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
      const answer = cache.find(known.key, known.route.datasets, at)
      if (answer === undefined || !('body' in answer)) return false
      // Counted now and not at the response's end: a listener would cost more than finding the bytes.
      const count = () => known.meters.servedFromCache(context.response.statusCode, context.startedAt)
      const sending = sendReady(context, answer, { now: at, from: 'cache', compression, encoding: known.encoding })
      if (sending === undefined) count()
      else
        sending.then(count).catch((error: unknown) => {
          if (!(error instanceof ClientDisconnected)) failures.respond(context, error)
        })
      return true
    },
  }
}
