import type { Logger } from '../../shared/telemetry/log.ts'
import { chooseFormat, type Format, toKnownFormat } from '../answers/formats.ts'
import { DataChanged } from '../answers/frame.ts'
import { ClientLeft, toLeaving } from '../answers/leaving.ts'
import type { ToAddress } from '../http/client-address.ts'
import { parseParameters, type RawParameters, readQuery } from '../parameters/parse.ts'
import { Problem, toProblem, toUnavailable } from '../problem/problem.ts'
import type { Route, Surroundings } from '../route/define-route.ts'
import { createByteCache } from './cache.ts'
import { createKnownUrls } from './known-urls.ts'
import type { Asker } from './lines.ts'
import type { Queue } from './queue.ts'
import { toHead, toReady } from './ready.ts'
import type { ApiMetrics } from './request-metrics.ts'
import { type Exchange, sendProblem, sendReady } from './send.ts'
import type { SendStream } from './stream.ts'

/** The parts of a request's path that stand for parameters. */
type InPath = Readonly<Record<string, string | string[]>>

export interface Serving {
  /** Answers from kept bytes if it can, before anything is parsed; tells whether it did. */
  serveKept(exchange: Exchange): boolean
  /** Answers a GET or HEAD request for a route, unless its client leaves before. */
  serve(route: Route, exchange: Exchange, inPath: InPath): Promise<void>
  /** Answers with a failure, and logs those that are the service's own. */
  fail(exchange: Exchange, error: unknown): void
}

/**
 * The format of an answer. A parameter wins over `Accept`; what the parameter says is checked with the others.
 * @throws Problem `not_acceptable`
 */
function toFormat(route: Route, accept: string | undefined, named: string | undefined): Format {
  if (route.record !== undefined) return named === undefined ? chooseFormat(accept) : (toKnownFormat(named) ?? 'json')
  if (route.accepts(accept)) return 'json'
  throw new Problem('not_acceptable', `This path answers with ${route.mediaType} only.`, { allowed: [route.mediaType] })
}

/** What a request asks of a route: typed parameters, and the format. */
function parse(route: Route, accept: string | undefined, raw: RawParameters, inPath: InPath) {
  const named = raw.values.get('format')?.[0]
  const format = toFormat(route, accept, named)
  const parts = Object.entries(inPath).filter(([name]) => name in route.query)
  const ofPath = Object.fromEntries(parts.map(([name, value]) => [name, String(value)]))
  const query = parseParameters(format === 'json' ? route.query : route.tableQuery, raw, ofPath)
  return { query, format, isNamed: named !== undefined }
}

/** By address: whoever sends many requests waits behind himself. */
const createToAsker =
  (toAddress: ToAddress) =>
  ({ path }: Route, { request }: Exchange): Asker => ({ client: toAddress(request), route: path })

/** Whether a request is refused because the service is busy or stopping: that is no failure. */
const isRefusal = (error: unknown): error is Problem =>
  error instanceof Problem && error.status >= 500 && error.particulars.cause === undefined

const TELL_REFUSALS_MS = 1_000

/** Tells of refusals, of many in one line: writing a line each would cost more than refusing does. */
function createRefusals(log: Logger) {
  let toldAt = Number.NEGATIVE_INFINITY
  let untold = 0
  return {
    note: (told: object, reason: string) => {
      untold += 1
      if (performance.now() - toldAt < TELL_REFUSALS_MS) return
      log.warn({ ...told, reason, refused: untold }, 'refused')
      toldAt = performance.now()
      untold = 0
    },
  }
}

function createFail(log: Logger, refusals: ReturnType<typeof createRefusals>, publicUrl: string): Serving['fail'] {
  return (exchange, error) => {
    const problem = toProblem(error)
    if (exchange.response.headersSent || exchange.response.destroyed) {
      // Half an answer must not look like a whole one.
      exchange.response.destroy()
      log.warn({ requestId: exchange.requestId, err: error }, 'a response broke off')
      return
    }
    const told = { requestId: exchange.requestId, code: problem.code }
    if (isRefusal(error)) refusals.note(told, error.message)
    else if (problem.status >= 500) log.error({ ...told, err: error }, 'failed')
    sendProblem(exchange, problem, publicUrl)
  }
}

/** How often an answer is tried whose data changes each time while it is read. */
const MOST_TRIES = 5

/**
 * Makes an answer again when its data changed before any of it was sent; does nothing more once the client has left.
 */
async function tryAgain({ response }: Exchange, work: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work()
    } catch (error) {
      if (error instanceof ClientLeft) return
      if (!(error instanceof DataChanged) || response.headersSent) throw error
      if (tries === MOST_TRIES) throw toUnavailable('The data is changing at the moment.', error)
    }
  }
}

/** The wrapper around every route: parameters, kept bytes, conditional requests, encodings, failures, metrics. */
export function createServing(
  surroundings: Surroundings,
  options: {
    log: Logger
    metrics: ApiMetrics
    cacheBytes: number
    queue: Queue
    sendStream: SendStream
    toAddress: ToAddress
  },
): Serving {
  const { now, config, commits } = surroundings
  const { metrics, log, cacheBytes, queue, sendStream } = options
  const refusals = createRefusals(log)
  const toAsker = createToAsker(options.toAddress)
  const onLost = (error: unknown) => {
    if (!isRefusal(error)) log.warn({ err: error }, 'an answer could not be renewed')
  }
  const cache = createByteCache({ maxBytes: cacheBytes, commits, queue, now, onLost })
  const known = createKnownUrls(metrics)
  const fail = createFail(log, refusals, config.api.publicUrl)

  /** What is kept, or put together from what is kept: nobody has to wait for it, nor for those who have to. */
  const findAtOnce = (route: Route, settled: ReturnType<Route['settle']>) => {
    const at = now()
    const { datasets } = route
    const kept = cache.peek(settled.key, datasets, at)
    if (kept !== undefined) return { answer: kept, from: 'cache' as const }
    const made = settled.peek(at)
    if (made === undefined) return undefined
    const answer = toReady(route, made)
    if (!('open' in answer)) cache.offer({ key: settled.key, datasets }, answer)
    return { answer, from: 'made' as const }
  }

  /** A request's way: parse, settle what is asked for, find it among the kept or make it, send. */
  const serveOnce = async (route: Route, exchange: Exchange, inPath: InPath, left: AbortSignal): Promise<void> => {
    const { url = '', headers } = exchange.request
    const asked = parse(route, headers.accept, readQuery(url), inPath)
    const around = route.volatile ? { ...surroundings, caller: exchange.caller } : surroundings
    const settled = route.settle(asked.query, asked.format, around)
    if (settled.connect !== undefined) return settled.connect(exchange)
    const make = async (abandoned: AbortSignal) => {
      return toReady(route, await settled.answer(abandoned, now()))
    }
    const asker = toAsker(route, exchange)
    const wanted = { key: settled.key, datasets: route.datasets, asker: route.isUrgent ? undefined : asker }
    const { answer, from } = route.volatile
      ? { answer: await make(left), from: 'made' as const }
      : (findAtOnce(route, settled) ?? (await cache.get(wanted, make, left)))
    metrics.of(route.path).answered(from)
    if ('open' in answer) return sendStream(exchange, asker, answer, toHead(route, answer), now(), left)
    if (exchange.extra.length === 0) known.add(url, route, settled.key, asked)
    await sendReady(exchange, answer, now(), from)
  }

  return {
    serve: (route, exchange, inPath) => {
      // Before anything else is done: a client may leave at any moment.
      const left = toLeaving(exchange.response)
      return tryAgain(exchange, () => serveOnce(route, exchange, inPath, left))
    },
    serveKept: (exchange) => {
      const { method, url = '', headers } = exchange.request
      // A part may be one that there is not: only the other way tells of failures.
      if ((method !== 'GET' && method !== 'HEAD') || headers.range !== undefined) return false
      const meant = known.find(url, headers.accept)
      if (meant === undefined) return false
      const at = now()
      const answer = cache.peek(meant.key, meant.route.datasets, at)
      if (answer === undefined) return false
      // Not at the response's end: a listener there costs more than finding the bytes.
      const count = () => meant.meters.servedKept(exchange.response.statusCode, exchange.startedAt)
      const sending = sendReady(exchange, answer, at, 'cache')
      if (sending === undefined) count()
      else sending.then(count).catch((error: unknown) => fail(exchange, error))
      return true
    },
    fail,
  }
}
