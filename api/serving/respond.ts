import type { IncomingMessage } from 'node:http'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import type { Cadence } from '../../shared/intervals.ts'
import { toStaleAt } from '../../shared/store/store.ts'
import { type Answer, type AssembledAnswer, DataChanged, FORMATS, type StreamAnswer } from '../formats/formats.ts'
import { FIXED_HEADERS, type FlatHeaders, toFlat } from '../http/headers.ts'
import {
  type ByteRange,
  chooseEncoding,
  type Encoding,
  isMatched,
  isSameAs,
  matchesTag,
  toByteRange,
  toEntityTag,
  toTagValue,
} from '../http/negotiation.ts'
import { Problem, toUnavailable } from '../problem/problem.ts'
import { type Route, toDeprecationHeaders } from '../route/define-route.ts'
import type { RequestContext } from '../route/request-context.ts'
import type { Compression } from './compression.ts'
import type { EncodedForm, Head, ReadyAnswer } from './ready-answer.ts'

/** A tenth of the cadence, but at most 15 minutes, so that a correction of daily data is not hidden for hours. */
const MAX_AGE_SECONDS: Readonly<Record<Cadence, number>> = { '5m': 30, '1h': 300, '1d': 900 }

/** Maximum age of answers without collected data: they change only with a release. */
const FIXED_MAX_AGE_SECONDS = 3600

/** A cache may serve its stale copy for twice the maximum age while it revalidates. */
const toCacheControl = (maxAge: number): string => `public, max-age=${maxAge}, stale-while-revalidate=${2 * maxAge}`

/**
 * `Cache-Control` at a given time, limited by the cadence of the data and by the answer's remaining validity. An
 * outdated answer gets a maximum age of 0.
 */
function toCacheControlAt({ maxAge, cacheControl, expiresAt }: Head, now: number, isOutdated: boolean): string {
  if (maxAge === undefined || (expiresAt === Number.POSITIVE_INFINITY && !isOutdated)) return cacheControl
  const remainingSeconds = isOutdated ? 0 : Math.max(0, Math.floor((expiresAt - now) / 1000))
  return remainingSeconds >= maxAge ? cacheControl : toCacheControl(remainingSeconds)
}

/** The dataset with the shortest cadence decides the maximum age. */
const toMaxAge = (datasets: readonly DatasetFacts[]): number =>
  Math.min(FIXED_MAX_AGE_SECONDS, ...datasets.map(({ cadence }) => MAX_AGE_SECONDS[cadence]))

/** Builds the headers that all responses with an answer have in common. */
export function toHead(route: Route, answer: Answer): Head {
  const asOf = answer.asOf === null ? undefined : new Date(answer.asOf)
  const headers = [
    ...['Content-Type', answer.format === undefined ? route.contentType : FORMATS[answer.format].contentType],
    ...['Vary', route.record === undefined ? 'Accept-Encoding' : 'Accept, Accept-Encoding'],
    ...(asOf === undefined ? [] : ['Last-Modified', asOf.toUTCString(), 'X-Data-As-Of', asOf.toISOString()]),
    ...(FORMATS[answer.format ?? 'json'].isBinary ? ['Accept-Ranges', 'bytes'] : []),
    ...toFlat(answer.headers ?? {}),
    ...(route.deprecated === undefined ? [] : toDeprecationHeaders(route.deprecated)),
  ]
  const [main] = route.datasets
  const byCadence = answer.asOf === null || main === undefined ? null : toStaleAt(answer.asOf, main)
  const maxAge = route.volatile ? undefined : toMaxAge(route.datasets)
  return {
    headers,
    staleAt: answer.staleAt === undefined ? byCadence : answer.staleAt,
    maxAge,
    cacheControl: maxAge === undefined ? 'no-store' : toCacheControl(maxAge),
    expiresAt: answer.expiresAt ?? Number.POSITIVE_INFINITY,
  }
}

/** An answer that is sent in several writes and not cached. */
export type LongAnswer = StreamAnswer | AssembledAnswer

/** A long answer that clients read in ranges. Its digest is cached, and the way to start its statement. */
export type RangedAnswer = StreamAnswer & { readonly size: number; readonly expiresAt: number }

/** Estimated memory of a long answer without its bytes. */
const RANGED_BYTES = 4096

/** Turns an answer into a form for caching and sending. Returns a long answer that is not cached unchanged. */
export function toReady(route: Route, answer: Answer): ReadyAnswer | RangedAnswer | LongAnswer {
  if ('open' in answer) {
    if (!FORMATS[answer.format ?? 'json'].isBinary || route.volatile) return answer
    return { ...answer, size: RANGED_BYTES, expiresAt: answer.expiresAt ?? Number.POSITIVE_INFINITY }
  }
  if ('assembled' in answer && answer.assembled.isLong) return answer
  const body = 'body' in answer ? answer.body : answer.assembled
  const forms: ReadyAnswer['forms'] = new Map()
  return {
    body,
    get size() {
      let bytes = Buffer.isBuffer(body) ? body.length : body.size
      for (const form of forms.values()) if (form.bytes !== body) bytes += form.bytes.length
      return bytes
    },
    tag: route.volatile ? null : Buffer.isBuffer(body) ? toTagValue(body) : body.tag,
    head: toHead(route, answer),
    expiresAt: route.volatile ? 0 : (answer.expiresAt ?? Number.POSITIVE_INFINITY),
    isQuick: 'assembled' in answer || (answer.isQuick ?? false),
    isPacked: FORMATS[answer.format ?? 'json'].isPacked,
    hasRanges: FORMATS[answer.format ?? 'json'].isBinary,
    forms,
  }
}

/** Maximum attempts for an answer whose data changes each time while it is read. */
const MOST_TRIES = 5

/** Makes an answer again if its data changed before any of it was sent. */
export async function retryChanged<T>(isSent: () => boolean, work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof DataChanged) || isSent()) throw error
      if (tries === MOST_TRIES) throw toUnavailable('The data is changing at the moment.', error)
    }
  }
}

/** Builds the form of an answer in one encoding and stores it for reuse. */
function toForm(answer: ReadyAnswer, encoding: Encoding, bytes: Buffer): EncodedForm {
  const headers = [...FIXED_HEADERS, ...answer.head.headers]
  if (answer.tag !== null) headers.push('ETag', toEntityTag(answer.tag, encoding))
  const full = [...headers, 'Content-Length', String(bytes.length)]
  if (encoding !== 'identity') full.push('Content-Encoding', encoding)
  const form = { bytes, headers, full }
  answer.forms.set(encoding, form)
  return form
}

/** For shorter bodies compression saves less than its headers cost. */
const MIN_ENCODED_BYTES = 256

/** The `X-Data-Stale` header, if the data is older than twice its cadence. */
export const toStaleHeader = ({ staleAt }: Head, now: number): FlatHeaders =>
  staleAt !== null && now > staleAt ? ['X-Data-Stale', 'true'] : []

/** `Cache-Control` for a client with limits: a shared cache would send their headers to other clients. */
export const restrictCaching = (caller: RequestContext['caller'], cacheControl: string): string =>
  caller === undefined ? cacheControl : cacheControl.replace('public', 'private')

/** Headers of this request only: request id, timing, maximum age and staleness. */
export function toRequestHeaders(context: RequestContext, head: Head, now: number, from: string): string[] {
  const timing = `${from}, total;dur=${Math.round((performance.now() - context.startedAt) * 10) / 10}`
  const headers = ['X-Request-Id', context.requestId, 'Server-Timing', timing]
  const cacheControl = toCacheControlAt(head, now, from === 'stale')
  headers.push('Cache-Control', restrictCaching(context.caller, cacheControl))
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
  const rangeHeaders = { 'Content-Range': `bytes */${length}` }
  throw new Problem('range_not_satisfiable', `The answer has ${length} bytes.`, { headers: rangeHeaders })
}

/**
 * Checks the `If-Match` precondition (RFC 9110, section 13.1.1). A null tag means that the answer has none; it has no precondition then.
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

interface Sending {
  /** Unix milliseconds. */
  readonly now: number
  /** Origin of the answer, for `Server-Timing`. */
  readonly from: string
  readonly compression: Pick<Compression, 'compress'>
  /** The encoding that the client prefers, if it is known. */
  readonly encoding?: Encoding
  /** Called with the bytes before they are sent. */
  readonly onSend?: (bytes: Buffer) => void
}

function writeForm(
  context: RequestContext,
  answer: ReadyAnswer,
  form: EncodedForm,
  { now, from, onSend }: Sending,
): void {
  const { request, response, extra, limit } = context
  if (request.headers['if-match'] !== undefined) checkIfMatch(request, answer.tag)
  const noneMatch = request.headers['if-none-match']
  const isCurrent = noneMatch !== undefined && answer.tag !== null && matchesTag(noneMatch, answer.tag)
  const length = form.bytes.length
  const part =
    isCurrent || !answer.hasRanges ? undefined : toPart(request, toEntityTag(String(answer.tag), 'identity'), length)
  const headers = (isCurrent || part !== undefined ? form.headers : form.full).concat(
    toRequestHeaders(context, answer.head, now, from),
  )
  if (extra.length > 0) headers.push(...extra)
  if (limit !== undefined) headers.push(...limit)
  const hasBody = !isCurrent && request.method !== 'HEAD'
  if (hasBody) onSend?.(form.bytes)
  if (part !== undefined) {
    response.writeHead(206, headers.concat(toPartHeaders(part, length)))
    return void response.end(form.bytes.subarray(part.start, part.end + 1))
  }
  response.writeHead(isCurrent ? 304 : 200, headers)
  if (hasBody) response.end(form.bytes)
  else response.end()
}

/** Sends a complete answer, or 304 if the client has it. Synchronous if nothing must be compressed. */
export function sendReady(context: RequestContext, answer: ReadyAnswer, sending: Sending): Promise<void> | undefined {
  const { headers } = context.request
  const isSmall = answer.body.length < MIN_ENCODED_BYTES
  const encoding: Encoding =
    isSmall || answer.isPacked || (answer.hasRanges && headers.range !== undefined)
      ? 'identity'
      : (sending.encoding ?? chooseEncoding(headers['accept-encoding']))
  const form = answer.forms.get(encoding)
  if (form !== undefined) {
    writeForm(context, answer, form, sending)
    return undefined
  }
  const write = (bytes: Buffer) => writeForm(context, answer, toForm(answer, encoding, bytes), sending)
  const { body } = answer
  if (encoding === 'identity') write(Buffer.isBuffer(body) ? body : body.toText())
  else if (encoding === 'gzip' && !Buffer.isBuffer(body)) write(body.toGzip(answer.isTransient !== true))
  else return sending.compression.compress(answer, encoding, context).then(write)
  return undefined
}
