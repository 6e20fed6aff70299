import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import type { ReadyAnswer } from './cache.ts'
import { isKnownTo, toEntityTag, toTagValue } from './conditional.ts'
import type { StreamAnswer } from './define.ts'
import { chooseEncoding, createEncoder, type Encoding, encode } from './encoding.ts'
import { frame } from './frame.ts'
import { type FlatHeaders, toCommonHeaders, toFlat } from './headers.ts'
import { type Problem, toProblemBody, toUnavailable } from './problem/problem.ts'

/** One request and what is known of it on the way to its response. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly requestId: string
  readonly startedAt: number
  /** Extra headers, such as the `Link` of an alias. */
  readonly extra: FlatHeaders
}

/** Below this compression saves less than its headers cost. */
const MIN_ENCODED_BYTES = 256
/** Most long answers on their way at once: each holds a connection to the database. */
const MAX_STREAMS = 16
let streams = 0

const elapsed = (exchange: Exchange) => `total;dur=${(performance.now() - exchange.startedAt).toFixed(1)}`

/** Headers that depend on the moment: whether the data is stale by now, and the timing. */
function toMomentHeaders(exchange: Exchange, staleAt: number | null, now: number, from: string): string[] {
  const timing = ['Server-Timing', `${from}, ${elapsed(exchange)}`]
  return staleAt !== null && now > staleAt ? ['X-Data-Stale', 'true', ...timing] : timing
}

/** Sends a whole answer, or 304 to a client that has it. */
export async function sendReady(exchange: Exchange, answer: ReadyAnswer, now: number, from: string): Promise<void> {
  const { request, response } = exchange
  const small = answer.body.length < MIN_ENCODED_BYTES
  const encoding: Encoding = small ? 'identity' : chooseEncoding(request.headers['accept-encoding'] as string)
  let bytes = answer.encoded.get(encoding)
  if (bytes === undefined) {
    bytes = await encode(answer.body, encoding)
    answer.encoded.set(encoding, bytes)
  }
  const headers = [
    ...toCommonHeaders(exchange.requestId),
    ...answer.headers,
    ...['ETag', toEntityTag(answer.tag, encoding)],
    ...toMomentHeaders(exchange, answer.staleAt, now, from),
    ...exchange.extra,
  ]
  if (isKnownTo(request.headers['if-none-match'], answer.tag)) {
    response.writeHead(304, headers).end()
    return
  }
  if (encoding !== 'identity') headers.push('Content-Encoding', encoding)
  headers.push('Content-Length', String(bytes.length))
  response.writeHead(200, headers)
  response.end(request.method === 'HEAD' ? undefined : bytes)
}

/**
 * Sends a long answer as ClickHouse writes it, at the pace of the client. The query ends when the client leaves, and
 * the response breaks off when the query fails.
 */
export async function sendStream(
  exchange: Exchange,
  answer: StreamAnswer,
  headers: FlatHeaders,
  moment: { now: number; staleAt: number | null },
): Promise<void> {
  const { request, response } = exchange
  const encoding = chooseEncoding(request.headers['accept-encoding'] as string)
  const tag = toTagValue(answer.digest)
  const all = () => [
    ...toCommonHeaders(exchange.requestId),
    ...headers,
    ...['ETag', toEntityTag(tag, encoding)],
    ...toMomentHeaders(exchange, moment.staleAt, moment.now, 'database'),
    ...exchange.extra,
    ...(encoding === 'identity' ? [] : ['Content-Encoding', encoding]),
  ]
  if (isKnownTo(request.headers['if-none-match'], tag)) return void response.writeHead(304, all()).end()
  if (request.method === 'HEAD') return void response.writeHead(200, all()).end()
  if (streams >= MAX_STREAMS) throw toUnavailable('Too many long series are on their way at once.')
  const left = new AbortController()
  const leave = () => left.abort()
  response.once('close', leave)
  streams++
  try {
    const source = await answer.open(left.signal)
    // A query that fails at once still gets a proper problem instead of a response that breaks off.
    await once(source, 'readable', { signal: left.signal })
    response.writeHead(200, all())
    const encoder = createEncoder(encoding)
    const framed = frame(source, answer.before, answer.after)
    await (encoder === undefined ? pipeline(framed, response) : pipeline(framed, encoder, response))
  } finally {
    streams--
    response.off('close', leave)
    left.abort()
  }
}

/** Sends a failure as problem+json. */
export function sendProblem(exchange: Exchange, problem: Problem, publicUrl: string): void {
  const { request, response, requestId } = exchange
  const instance = (request.url ?? '/').split('?', 1)[0] ?? '/'
  const body = Buffer.from(JSON.stringify(toProblemBody(problem, { publicUrl, instance, requestId })))
  response.writeHead(problem.status, [
    ...toCommonHeaders(requestId),
    ...['Content-Type', 'application/problem+json; charset=utf-8'],
    ...['Content-Length', String(body.length)],
    ...['Cache-Control', 'no-store'],
    ...toFlat(problem.particulars.headers ?? {}),
  ])
  response.end(request.method === 'HEAD' ? undefined : body)
}

/** Headers that stay the same for every response with this answer. */
export function toAnswerHeaders(facts: {
  contentType: string
  cacheControl: string
  asOf: number | null
  own: Readonly<Record<string, string>>
}): FlatHeaders {
  const asOf = facts.asOf === null ? undefined : new Date(facts.asOf)
  return [
    ...['Content-Type', facts.contentType],
    ...['Cache-Control', facts.cacheControl],
    ...['Vary', 'Accept-Encoding'],
    ...(asOf === undefined ? [] : ['Last-Modified', asOf.toUTCString(), 'X-Data-As-Of', asOf.toISOString()]),
    ...toFlat(facts.own),
  ]
}
