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

/** A whole answer, ready to be sent in every encoding asked for so far. */
export interface ReadyAnswer {
  readonly body: Buffer
  /** What its entity tags are made of; null for an answer of the moment, which nobody can have already. */
  readonly tag: string | null
  readonly head: Head
  readonly expiresAt: number
  /** Made without a statement: it is kept when it is asked for again. */
  readonly isQuick?: boolean
  /** Compressed already: it has no other encodings. */
  readonly isPacked?: boolean
  /** Parts of it may be asked for. */
  readonly hasRanges?: boolean
  readonly forms: Map<Encoding, EncodedForm>
}

/** A tenth of the cadence, yet never so long that a correction of daily data stays unseen for hours. */
const MAX_AGE_SECONDS: Readonly<Record<Cadence, number>> = { '5m': 30, '1h': 300, '1d': 900 }

/** How long answers without collected data hold: they change with a release only. */
const FIXED_MAX_AGE_SECONDS = 3600

/** While a cache asks again it may serve what it has for twice as long. */
const toCacheControl = (maxAge: number): string => `public, max-age=${maxAge}, stale-while-revalidate=${2 * maxAge}`

/** What the headers of every response with an answer are made of. */
export interface Head {
  /** Those that stay the same. */
  readonly headers: FlatHeaders
  /** From when on the data is stale, in Unix milliseconds; null is never. */
  readonly staleAt: number | null
  /** How long clients may reuse it by how often its data changes, in seconds; undefined where they may not. */
  readonly maxAge: number | undefined
  /** `Cache-Control` for as long. */
  readonly cacheControl: string
  /** From when on the answer is another one, in Unix milliseconds; clients may reuse it no longer than until then. */
  readonly expiresAt: number
}

/**
 * `Cache-Control` at a moment: true to how often the data changes, and to how long the answer holds from now on. An
 * answer that is outdated already promises nothing.
 */
export function toCacheControlAt({ maxAge, cacheControl, expiresAt }: Head, now: number, isOutdated: boolean): string {
  if (maxAge === undefined || (expiresAt === Number.POSITIVE_INFINITY && !isOutdated)) return cacheControl
  const left = isOutdated ? 0 : Math.max(0, Math.floor((expiresAt - now) / 1000))
  return left >= maxAge ? cacheControl : toCacheControl(left)
}

/** The most frequent dataset decides how long an answer may be reused. */
const toMaxAge = (datasets: readonly DatasetFacts[]): number =>
  Math.min(FIXED_MAX_AGE_SECONDS, ...datasets.map(({ cadence }) => MAX_AGE_SECONDS[cadence]))

/** What all responses with an answer have in common. */
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

/** A whole answer, ready to be kept and sent; a long one as it is. */
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

/** The form of an answer in one encoding, made on first use. Compressing is the only part that takes its time. */
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
