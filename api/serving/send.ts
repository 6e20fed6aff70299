import type { IncomingMessage } from 'node:http'
import { chooseEncoding, type Encoding } from '../http/accept.ts'
import { isKnownTo, isMatched, toEntityTag } from '../http/conditional.ts'
import { FIXED_HEADERS, type FlatHeaders, toFlat } from '../http/headers.ts'
import { type ByteRange, isSameAs, toByteRange } from '../http/range.ts'
import { Problem, toProblemBody } from '../problem/problem.ts'
import type { Exchange } from '../route/exchange.ts'
import { type EncodedForm, type Head, type ReadyAnswer, toCacheControlAt, toForm } from './ready.ts'

/** For shorter bodies compression saves less than its headers cost. */
const MIN_ENCODED_BYTES = 256

/** The `X-Data-Stale` header, if the data is older than twice its cadence. */
export const toStaleHeader = ({ staleAt }: Head, now: number): FlatHeaders =>
  staleAt !== null && now > staleAt ? ['X-Data-Stale', 'true'] : []

/** Headers of this request only: request id, timing, maximum age and staleness. */
export function toMomentHeaders(exchange: Exchange, head: Head, now: number, from: string): string[] {
  const timing = `${from}, total;dur=${Math.round((performance.now() - exchange.startedAt) * 10) / 10}`
  const headers = ['X-Request-Id', exchange.requestId, 'Server-Timing', timing]
  const cacheControl = toCacheControlAt(head, now, from === 'stale')
  // A shared cache would send one client's limit to other clients.
  headers.push(
    'Cache-Control',
    exchange.caller === undefined ? cacheControl : cacheControl.replace('public', 'private'),
  )
  headers.push(...toStaleHeader(head, now))
  return headers
}

/**
 * Returns the range that a request selects; undefined for the whole representation.
 * @throws Problem `range_not_satisfiable`
 */
export function toPart({ method, headers }: IncomingMessage, entityTag: string, length: number): ByteRange | undefined {
  if (method !== 'GET' || headers.range === undefined || !isSameAs(headers['if-range'], entityTag)) return undefined
  const range = toByteRange(headers.range, length)
  if (range !== 'unsatisfiable') return range
  const told = { 'Content-Range': `bytes */${length}` }
  throw new Problem('range_not_satisfiable', `The answer has ${length} bytes.`, { headers: told })
}

/**
 * Checks the `If-Match` precondition (RFC 9110, section 13.1.1). A null tag means that the answer has none.
 * @throws Problem `precondition_failed`
 */
export function checkIfMatch({ headers }: IncomingMessage, tag: string | null): void {
  if (!isMatched(headers['if-match'], tag))
    throw new Problem('precondition_failed', 'If-Match names none of the current bytes.')
}

/** The headers of a partial response to a representation of `length` bytes. */
export const toPartHeaders = ({ start, end }: ByteRange, length: number): string[] => [
  ...['Content-Range', `bytes ${start}-${end}/${length}`],
  ...['Content-Length', String(end - start + 1)],
]

function writeForm(exchange: Exchange, answer: ReadyAnswer, form: EncodedForm, now: number, from: string): void {
  const { request, response, extra, limit } = exchange
  checkIfMatch(request, answer.tag)
  const known = answer.tag !== null && isKnownTo(request.headers['if-none-match'], answer.tag)
  const length = form.bytes.length
  const part =
    known || !answer.hasRanges ? undefined : toPart(request, toEntityTag(String(answer.tag), 'identity'), length)
  const headers = (known || part !== undefined ? form.headers : form.full).concat(
    toMomentHeaders(exchange, answer.head, now, from),
  )
  if (extra.length > 0) headers.push(...extra)
  if (limit !== undefined) headers.push(...limit)
  if (part !== undefined) {
    response.writeHead(206, headers.concat(toPartHeaders(part, length)))
    return void response.end(form.bytes.subarray(part.start, part.end + 1))
  }
  response.writeHead(known ? 304 : 200, headers)
  if (known || request.method === 'HEAD') response.end()
  else response.end(form.bytes)
}

/** Sends a complete answer, or 304 if the client has it. Synchronous if the encoding was made before. */
export function sendReady(
  exchange: Exchange,
  answer: ReadyAnswer,
  now: number,
  from: string,
): Promise<void> | undefined {
  const small = answer.body.length < MIN_ENCODED_BYTES
  const encoding: Encoding =
    small || answer.isPacked || (answer.hasRanges && exchange.request.headers.range !== undefined)
      ? 'identity'
      : chooseEncoding(exchange.request.headers['accept-encoding'])
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
  // A string body is sent in one write with the headers.
  const body = JSON.stringify(toProblemBody(problem, { publicUrl, instance, requestId }))
  response.writeHead(problem.status, [
    ...FIXED_HEADERS,
    ...['X-Request-Id', requestId],
    ...['Content-Type', 'application/problem+json; charset=utf-8'],
    ...['Content-Length', String(Buffer.byteLength(body))],
    ...['Cache-Control', 'no-store'],
    ...toFlat(problem.particulars.headers ?? {}),
  ])
  response.end(request.method === 'HEAD' ? undefined : body)
}
