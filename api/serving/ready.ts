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
  readonly headers: FlatHeaders
  readonly staleAt: number | null
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

/**
 * `Cache-Control` true to how often the data changes: the most frequent dataset decides, and `seconds`, how long the
 * answer holds at all, bounds it. While a cache asks again it may serve what it has for as long once more.
 */
function toCacheControl(datasets: readonly DatasetFacts[], seconds = Number.POSITIVE_INFINITY): string {
  const ages = datasets.map((dataset) => MAX_AGE_SECONDS[dataset.cadence])
  const maxAge = Math.max(1, Math.floor(Math.min(FIXED_MAX_AGE_SECONDS, seconds, ...ages)))
  return `public, max-age=${maxAge}, stale-while-revalidate=${2 * maxAge}`
}

/** The headers that stay the same for every response with an answer, and from when on its data is stale. */
export function toHead(route: Route, answer: Answer, now: number): { headers: FlatHeaders; staleAt: number | null } {
  const lasts = answer.expiresAt === undefined ? undefined : (answer.expiresAt - now) / 1000
  const asOf = answer.asOf === null ? undefined : new Date(answer.asOf)
  const headers = [
    ...['Content-Type', answer.format === undefined ? route.contentType : FORMATS[answer.format].contentType],
    ...['Cache-Control', route.volatile ? 'no-store' : toCacheControl(route.datasets, lasts)],
    ...['Vary', route.record === undefined ? 'Accept-Encoding' : 'Accept, Accept-Encoding'],
    ...(asOf === undefined ? [] : ['Last-Modified', asOf.toUTCString(), 'X-Data-As-Of', asOf.toISOString()]),
    ...(FORMATS[answer.format ?? 'json'].isBinary ? ['Accept-Ranges', 'bytes'] : []),
    ...toFlat(answer.headers ?? {}),
  ]
  const [main] = route.datasets
  const byCadence = answer.asOf === null || main === undefined ? null : toStaleAt(answer.asOf, main)
  return { headers, staleAt: answer.staleAt === undefined ? byCadence : answer.staleAt }
}

/** A whole answer that was asked for at a time, ready to be kept and sent; a long one as it is. */
export function toReady(route: Route, answer: Answer, askedAt: number): ReadyAnswer | StreamAnswer {
  if ('open' in answer) return answer
  return {
    body: answer.body,
    tag: route.volatile ? null : toTagValue(answer.body),
    ...toHead(route, answer, askedAt),
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
  const headers = [...FIXED_HEADERS, ...answer.headers]
  if (answer.tag !== null) headers.push('ETag', toEntityTag(answer.tag, encoding))
  const full = [...headers, 'Content-Length', String(bytes.length)]
  if (encoding !== 'identity') full.push('Content-Encoding', encoding)
  const form = { bytes, headers, full }
  answer.forms.set(encoding, form)
  return form
}
