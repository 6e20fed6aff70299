import type { IncomingMessage, ServerResponse } from 'node:http'
import { isKnownTo, toEntityTag } from '../http/conditional.ts'
import { chooseEncoding, type Encoding, encode } from '../http/encoding.ts'
import { FIXED_HEADERS, type FlatHeaders, toFlat } from '../http/headers.ts'
import { type Problem, toProblemBody } from '../problem/problem.ts'
import type { EncodedForm, ReadyAnswer } from './cache.ts'

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

/** Headers of this request alone: its id, whether the data is stale by now, and the timing. */
export function toMomentHeaders(exchange: Exchange, staleAt: number | null, now: number, from: string): string[] {
  const timing = `${from}, total;dur=${Math.round((performance.now() - exchange.startedAt) * 10) / 10}`
  const headers = ['X-Request-Id', exchange.requestId, 'Server-Timing', timing]
  if (staleAt !== null && now > staleAt) headers.push('X-Data-Stale', 'true')
  return headers
}

/** The form of an answer in one encoding, made on first use. Compressing is the only part that takes its time. */
async function toForm(answer: ReadyAnswer, encoding: Encoding): Promise<EncodedForm> {
  const bytes = await encode(answer.body, encoding)
  const headers = [...FIXED_HEADERS, ...answer.headers]
  if (answer.tag !== null) headers.push('ETag', toEntityTag(answer.tag, encoding))
  const full = [...headers, 'Content-Length', String(bytes.length)]
  if (encoding !== 'identity') full.push('Content-Encoding', encoding)
  const form = { bytes, headers, full }
  answer.forms.set(encoding, form)
  return form
}

function writeForm(exchange: Exchange, answer: ReadyAnswer, form: EncodedForm, now: number, from: string): void {
  const { request, response, extra } = exchange
  const known = answer.tag !== null && isKnownTo(request.headers['if-none-match'], answer.tag)
  const headers = (known ? form.headers : form.full).concat(toMomentHeaders(exchange, answer.staleAt, now, from))
  if (extra.length > 0) headers.push(...extra)
  response.writeHead(known ? 304 : 200, headers)
  if (known || request.method === 'HEAD') response.end()
  else response.end(form.bytes)
}

/** Sends a whole answer, or 304 to a client that has it; at once where the encoding was asked for before. */
export function sendReady(
  exchange: Exchange,
  answer: ReadyAnswer,
  now: number,
  from: string,
): Promise<void> | undefined {
  const small = answer.body.length < MIN_ENCODED_BYTES
  const encoding: Encoding =
    small || answer.isPacked ? 'identity' : chooseEncoding(exchange.request.headers['accept-encoding'])
  const form = answer.forms.get(encoding)
  if (form !== undefined) {
    writeForm(exchange, answer, form, now, from)
    return undefined
  }
  return toForm(answer, encoding).then((made) => writeForm(exchange, answer, made, now, from))
}

/** Sends a failure as problem+json. */
export function sendProblem(exchange: Exchange, problem: Problem, publicUrl: string): void {
  const { request, response, requestId } = exchange
  const instance = (request.url ?? '/').split('?', 1)[0] ?? '/'
  const body = Buffer.from(JSON.stringify(toProblemBody(problem, { publicUrl, instance, requestId })))
  response.writeHead(problem.status, [
    ...FIXED_HEADERS,
    ...['X-Request-Id', requestId],
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
  vary: string
  own: Readonly<Record<string, string>>
}): FlatHeaders {
  const asOf = facts.asOf === null ? undefined : new Date(facts.asOf)
  return [
    ...['Content-Type', facts.contentType],
    ...['Cache-Control', facts.cacheControl],
    ...['Vary', facts.vary],
    ...(asOf === undefined ? [] : ['Last-Modified', asOf.toUTCString(), 'X-Data-As-Of', asOf.toISOString()]),
    ...toFlat(facts.own),
  ]
}
