import type { DatasetFacts } from '../../shared/datasets/list.ts'
import type { Cadence } from '../../shared/intervals.ts'
import { toStaleAt } from '../../shared/store/freshness.ts'
import type { Answer, StreamAnswer } from '../answers/answer.ts'
import { FORMATS } from '../answers/formats.ts'
import type { Encoding } from '../http/accept.ts'
import { toEntityTag, toTagValue } from '../http/conditional.ts'
import { encode } from '../http/encoding.ts'
import { FIXED_HEADERS, type FlatHeaders, toFlat } from '../http/headers.ts'
import type { Route } from '../route/define-route.ts'
import { toDeprecationHeaders } from '../route/deprecation.ts'

/** An answer's bytes in one encoding, with the headers of a 304 and of a full response. */
export interface EncodedForm {
  readonly bytes: Buffer
  readonly headers: string[]
  readonly full: string[]
}

/** A complete answer with every encoding requested so far. */
export interface ReadyAnswer {
  readonly body: Buffer
  /** The basis of its entity tags; null for an answer that is only valid at the moment of the request. */
  readonly tag: string | null
  readonly head: Head
  readonly expiresAt: number
  /** Made without a database statement: it is cached on its second request. */
  readonly isQuick?: boolean
  /** Already compressed: no other encodings are made. */
  readonly isPacked?: boolean
  /** Whether range requests are supported. */
  readonly hasRanges?: boolean
  readonly forms: Map<Encoding, EncodedForm>
}

/** A tenth of the cadence, but at most 15 minutes, so that a correction of daily data is not hidden for hours. */
const MAX_AGE_SECONDS: Readonly<Record<Cadence, number>> = { '5m': 30, '1h': 300, '1d': 900 }

/** Maximum age of answers without collected data: they change only with a release. */
const FIXED_MAX_AGE_SECONDS = 3600

/** A cache may serve its stale copy for twice the maximum age while it revalidates. */
const toCacheControl = (maxAge: number): string => `public, max-age=${maxAge}, stale-while-revalidate=${2 * maxAge}`

/** Input for the headers of every response with an answer. */
export interface Head {
  /** Headers that do not depend on the time. */
  readonly headers: FlatHeaders
  /** Time from which the data is stale, in Unix milliseconds; null for never. */
  readonly staleAt: number | null
  /** Maximum age in seconds, from the cadence of its data; undefined if clients must not cache it. */
  readonly maxAge: number | undefined
  /** `Cache-Control` for `maxAge`. */
  readonly cacheControl: string
  /** Time at which the answer changes, in Unix milliseconds. Clients must not reuse it after that. */
  readonly expiresAt: number
}

/**
 * `Cache-Control` at a given time, limited by the cadence of the data and by the answer's remaining validity. An
 * outdated answer gets a maximum age of 0.
 */
export function toCacheControlAt({ maxAge, cacheControl, expiresAt }: Head, now: number, isOutdated: boolean): string {
  if (maxAge === undefined || (expiresAt === Number.POSITIVE_INFINITY && !isOutdated)) return cacheControl
  const left = isOutdated ? 0 : Math.max(0, Math.floor((expiresAt - now) / 1000))
  return left >= maxAge ? cacheControl : toCacheControl(left)
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

/** Turns a complete answer into a form for caching and sending. Returns a stream answer unchanged. */
export function toReady(route: Route, answer: Answer): ReadyAnswer | StreamAnswer {
  if ('open' in answer) return answer
  return {
    body: answer.body,
    tag: route.volatile ? null : toTagValue(answer.body),
    head: toHead(route, answer),
    expiresAt: route.volatile ? 0 : (answer.expiresAt ?? Number.POSITIVE_INFINITY),
    isQuick: answer.isQuick ?? false,
    isPacked: FORMATS[answer.format ?? 'json'].isPacked,
    hasRanges: FORMATS[answer.format ?? 'json'].isBinary,
    forms: new Map(),
  }
}

/** Returns an answer in one encoding and stores it for reuse. Compression is the only slow step. */
export async function toForm(answer: ReadyAnswer, encoding: Encoding): Promise<EncodedForm> {
  const bytes = await encode(answer.body, encoding)
  const headers = [...FIXED_HEADERS, ...answer.head.headers]
  if (answer.tag !== null) headers.push('ETag', toEntityTag(answer.tag, encoding))
  const full = [...headers, 'Content-Length', String(bytes.length)]
  if (encoding !== 'identity') full.push('Content-Encoding', encoding)
  const form = { bytes, headers, full }
  answer.forms.set(encoding, form)
  return form
}
