import type { Request } from 'express'
import { LRUCache } from 'lru-cache'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { Answer, StreamAnswer } from '../answers/answer.ts'
import { chooseFormat, FORMATS, type Format, findFormat, toKnownFormat } from '../answers/formats.ts'
import { DataChanged } from '../answers/frame.ts'
import { ClientLeft, toLeaving } from '../answers/leaving.ts'
import { accepts } from '../http/accept.ts'
import { toTagValue } from '../http/conditional.ts'
import { toCacheControl, toStaleAt } from '../http/freshness.ts'
import type { FlatHeaders } from '../http/headers.ts'
import { parseParameters } from '../parameters/parse.ts'
import { readQuery } from '../parameters/raw.ts'
import { Problem, toProblem, toUnavailable } from '../problem/problem.ts'
import type { Route, Surroundings } from '../route/define.ts'
import { type ByteCache, createByteCache, type ReadyAnswer } from './cache.ts'
import type { ApiMetrics, RouteMeters } from './metrics.ts'
import { type Exchange, sendProblem, sendReady, toAnswerHeaders } from './send.ts'
import type { Readers } from './slow-readers.ts'
import { createStreaming } from './stream.ts'

export interface Serving {
  /** Answers from kept bytes if it can, before anything is parsed; tells whether it did. */
  serveKept(exchange: Exchange): boolean
  /** Answers a GET or HEAD request for a route, unless its client leaves before. */
  serve(route: Route, request: Request, exchange: Exchange): Promise<void>
  /** Answers with a failure, and logs those that are the service's own. */
  fail(exchange: Exchange, error: unknown): void
}

/** What a raw URL meant when it was parsed. */
interface KnownUrl {
  readonly route: Route
  readonly key: string
  readonly type: string
  readonly format: Format
  /** Whether the URL itself names the format. */
  readonly isNamed: boolean
  readonly meters: RouteMeters
}

const MAX_KNOWN_URLS = 20_000
const MAX_KNOWN_URL_LENGTH = 512

const mediaType = (route: Route) => route.contentType.split(';', 1)[0] ?? route.contentType

/**
 * The format of an answer. A parameter wins over `Accept`; what the parameter says is checked with the others.
 * @throws Problem `not_acceptable`
 */
function toFormat(route: Route, accept: string | undefined, named: string | undefined): Format {
  if (route.record !== undefined) return named === undefined ? chooseFormat(accept) : (toKnownFormat(named) ?? 'json')
  if (accepts(accept, mediaType(route))) return 'json'
  throw new Problem('not_acceptable', `This path answers with ${mediaType(route)} only.`, {
    allowed: [mediaType(route)],
  })
}

/** Those of the path's parts that the route knows as parameters. */
function readPath(route: Route, request: Request): Record<string, string> {
  const parts = Object.entries(request.params).filter(([name]) => name in route.query)
  return Object.fromEntries(parts.map(([name, value]) => [name, String(value)]))
}

/** Whether a known URL means the same to a client with this `Accept`. */
function isWished({ route, type, format, isNamed }: KnownUrl, accept: string | undefined): boolean {
  if (route.record === undefined) return accepts(accept, type)
  return isNamed || findFormat(accept) === format
}

function toReady(route: Route, answer: Answer, now: number): { headers: FlatHeaders; staleAt: number | null } {
  const [main] = route.datasets
  const follows = answer.asOf === null || main === undefined ? null : toStaleAt(answer.asOf, main)
  const lasts = answer.expiresAt === undefined ? undefined : (answer.expiresAt - now) / 1000
  const cacheControl = route.volatile ? 'no-store' : toCacheControl(route.datasets, lasts)
  const headers = toAnswerHeaders({
    contentType: answer.format === undefined ? route.contentType : FORMATS[answer.format].contentType,
    cacheControl,
    asOf: answer.asOf,
    vary: route.record === undefined ? 'Accept-Encoding' : 'Accept, Accept-Encoding',
    own: answer.headers ?? {},
  })
  return { headers, staleAt: answer.staleAt === undefined ? follows : answer.staleAt }
}

async function make(route: Route, find: () => Promise<Answer>, now: () => number): Promise<ReadyAnswer | StreamAnswer> {
  const startedAt = now()
  const answer = await find()
  if ('open' in answer) return answer
  return {
    body: answer.body,
    tag: route.volatile ? null : toTagValue(answer.body),
    ...toReady(route, answer, startedAt),
    expiresAt: route.volatile ? 0 : (answer.expiresAt ?? Number.POSITIVE_INFINITY),
    isPacked: FORMATS[answer.format ?? 'json'].isPacked,
    forms: new Map(),
  }
}

function createFail(log: Logger, publicUrl: string): Serving['fail'] {
  return (exchange, error) => {
    const problem = toProblem(error)
    if (exchange.response.headersSent || exchange.response.destroyed) {
      // Half an answer must not look like a whole one.
      exchange.response.destroy()
      log.warn({ requestId: exchange.requestId, err: error }, 'a response broke off')
      return
    }
    const told = { requestId: exchange.requestId, code: problem.code }
    // What the service refuses by itself, because it is busy or stopping, is no failure of it.
    const isRefused = problem === error && problem.particulars.cause === undefined
    if (isRefused && problem.status >= 500) log.warn({ ...told, reason: problem.message }, 'refused')
    else if (problem.status >= 500) log.error({ ...told, err: error }, 'failed')
    sendProblem(exchange, problem, publicUrl)
  }
}

/** So often is an answer made whose data changes while it is read. */
const MOST_TRIES = 5

/** The wrapper around every route: parameters, kept bytes, conditional requests, encodings, failures, metrics. */
export function createServing(
  surroundings: Surroundings,
  options: { log: Logger; metrics: ApiMetrics; readers: Readers; cacheBytes: number },
): Serving {
  const { now, config, commits } = surroundings
  const { metrics } = options
  const onLost = (error: unknown) => options.log.warn({ err: error }, 'an answer could not be renewed')
  const cache: ByteCache = createByteCache({ maxBytes: options.cacheBytes, commits, now, onLost })
  const sendStream = createStreaming(options.readers)
  const fail = createFail(options.log, config.api.publicUrl)
  // Which answer a raw URL had: parsing it again would give the same key.
  const known = new LRUCache<string, KnownUrl>({ max: MAX_KNOWN_URLS })

  const serve: Serving['serve'] = async (route, request, exchange) => {
    // Before anything else is done: a client may leave at any moment.
    const left = toLeaving(exchange.response)
    for (let tries = 1; ; tries += 1) {
      try {
        return await serveOnce(route, request, exchange, left)
      } catch (error) {
        if (error instanceof ClientLeft) return
        if (!(error instanceof DataChanged) || exchange.response.headersSent) throw error
        if (tries === MOST_TRIES) throw toUnavailable('The data is changing at the moment.', error)
      }
    }
  }
  const serveOnce = async (route: Route, request: Request, exchange: Exchange, left: AbortSignal): Promise<void> => {
    const raw = readQuery(request.url)
    const named = raw.values.get('format')?.[0]
    const format = toFormat(route, request.headers.accept, named)
    const shape = format === 'json' ? route.query : route.tableQuery
    const settled = route.settle(parseParameters(shape, raw, readPath(route, request)), format, surroundings)
    const find = (abandoned: AbortSignal) => make(route, () => settled.answer(abandoned), now)
    const { answer, from } = await cache.get(settled.key, route.datasets, find, left)
    metrics.of(route.path).answered(from)
    if ('open' in answer) {
      const { headers, staleAt } = toReady(route, answer, now())
      return sendStream(exchange, answer, headers, { now: now(), staleAt }, left)
    }
    const { url } = request
    if (!route.volatile && exchange.extra.length === 0 && url.length <= MAX_KNOWN_URL_LENGTH) {
      const meters = metrics.of(route.path)
      known.set(url, { route, key: settled.key, type: mediaType(route), format, isNamed: named !== undefined, meters })
    }
    await sendReady(exchange, answer, now(), from)
  }

  const count = ({ response, startedAt }: Exchange, { answered, requested }: RouteMeters) => {
    answered('cache')
    // Not at the response's end: a listener there costs more than finding the bytes.
    requested(response.statusCode, (performance.now() - startedAt) / 1000)
  }
  const serveKept: Serving['serveKept'] = (exchange) => {
    const { method, url = '', headers } = exchange.request
    if (method !== 'GET' && method !== 'HEAD') return false
    const meant = known.get(url)
    if (meant === undefined) return false
    const answer = cache.peek(meant.key, meant.route.datasets)
    if (answer === undefined || !isWished(meant, headers.accept)) return false
    const sending = sendReady(exchange, answer, now(), 'cache')
    if (sending === undefined) count(exchange, meant.meters)
    else sending.then(() => count(exchange, meant.meters)).catch((error: unknown) => fail(exchange, error))
    return true
  }

  return { serveKept, serve, fail }
}
