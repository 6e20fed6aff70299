import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'

/** Headers of data answers that scripts of other origins may read, with what they say (docs/contract.md, section 6). */
export const ANSWER_HEADERS = {
  ETag: 'Strong entity tag of exactly these bytes; send it back as If-None-Match for a 304.',
  'Last-Modified': 'Time of the newest datum used; absent when the answer holds none.',
  'Cache-Control': 'For how long the answer may be reused, after how often its data is refreshed.',
  'X-Data-As-Of': 'Time of the newest datum used, as ISO 8601 UTC.',
  'X-Data-Stale': 'The text `true` once the data is older than twice its refresh cadence; absent otherwise.',
  'X-Request-Id': 'Id of the request: the one that the client sent, or a new one.',
  'Server-Timing': 'Where the time went, in milliseconds.',
} as const

/** The headers of every answer where requests are limited (draft-ietf-httpapi-ratelimit-headers). */
export const LIMIT_HEADERS = {
  'RateLimit-Policy':
    'Where requests are limited: how many (`q`) in how many seconds (`w`) the key or the address may.',
  RateLimit:
    'Where requests are limited: how many are left (`r`), and in how many seconds (`t`) the next window begins.',
} as const

/** The headers of series answers. */
export const SERIES_HEADERS = {
  'X-Series-Interval': 'The interval of the series.',
  'X-Series-Points': 'How many points the answer holds.',
  'X-Series-Missing': 'How many buckets of the range have no observation although their collection is due.',
} as const

/** The headers of a series whose source may have had it at a coarser step than the one asked for. */
export const COARSE_HEADERS = {
  'X-Series-Coarse': 'How many points are observations that stand for more time than the interval asked for.',
} as const

/** The headers of answers in another format than JSON. */
export const RECORD_HEADERS = {
  'Content-Disposition': 'A name for the file; absent for JSON.',
} as const

/** The headers of answers of which a part may be asked for: those that readers of Parquet and Arrow read in parts. */
export const RANGE_HEADERS = {
  'Accept-Ranges': '`bytes` for Parquet and Arrow: `Range` takes one range of them (RFC 9110, section 14).',
  'Content-Range': 'Which bytes these are, and of how many; with 206 and 416 only.',
} as const

/** The header of answers that come in pages. */
export const PAGE_HEADERS = {
  Link: 'With `rel="next"` where to find what follows, while something does; with `rel="canonical"` the path itself.',
} as const

/** The header of lists. */
export const LIST_HEADERS = {
  'X-Total-Count': 'How many records match, whatever `limit` says.',
} as const

/** The headers of what the Index is made of. Contributions and rebalancing sum to the change. */
export const INDEX_HEADERS = {
  'X-Index-Value': 'What the basket is worth in US dollars: the value of the slot in `/data/index/historic`.',
  'X-Index-Change-24h': 'Change of that value over 24 hours, in percent; absent where there was none.',
  'X-Index-Rebalance-24h':
    'What of that change is none of prices: what the basket was worth more after new compositions came into force, in percentage points.',
} as const

/** The headers of a treasury's holdings. */
export const HOLDING_HEADERS = {
  'X-Price-Sources': 'Whose prices the values are of, with commas between.',
  'X-Spam-Count': 'How many tokens were left out as spam; `unknown` where the source does not tell them.',
} as const

const EXPOSED = [
  ...[
    ...[ANSWER_HEADERS, SERIES_HEADERS, COARSE_HEADERS],
    ...[RECORD_HEADERS, RANGE_HEADERS, PAGE_HEADERS, LIST_HEADERS, INDEX_HEADERS, HOLDING_HEADERS, LIMIT_HEADERS],
  ].flatMap((headers) => Object.keys(headers)),
  'Retry-After',
].join(', ')

/** Header names and values in turn, as `writeHead` takes them. */
export type FlatHeaders = readonly string[]

/** What every response carries, whatever it says. */
export const FIXED_HEADERS: FlatHeaders = [
  ...['Access-Control-Allow-Origin', '*'],
  ...['Access-Control-Expose-Headers', EXPOSED],
  ...['X-Content-Type-Options', 'nosniff'],
]

/** Names of headers with commas between (RFC 9110, section 5.6.2). */
const HEADER_NAMES = /^[\w!#$%&'*+.^`|~-]+(\s*,\s*[\w!#$%&'*+.^`|~-]+)*$/

/**
 * What a preflight request of a browser is told: it may send whatever headers it wants to, because nothing here depends
 * on who asks (docs/contract.md, section 8). They are named one by one, as `*` does not cover all of them.
 */
export function toPreflightHeaders(allow: string, wanted: string | undefined): FlatHeaders {
  const named = wanted !== undefined && HEADER_NAMES.test(wanted) ? wanted : '*'
  return [
    ...['Allow', allow],
    ...['Access-Control-Allow-Methods', allow],
    ...['Access-Control-Allow-Headers', named],
    ...['Access-Control-Max-Age', '86400'],
    ...['Vary', 'Access-Control-Request-Headers'],
  ]
}

const SANE_ID = /^[A-Za-z0-9._-]{1,128}$/

/** Gives each request its id: the client's where it is harmless in headers and logs, else a new one. */
export function createRequestIds(): (request: IncomingMessage) => string {
  // A random id per app and a count are as unique as a random id per request, and cost nothing.
  const app = randomUUID()
  let requests = 0
  return (request) => {
    const given = request.headers['x-request-id']
    if (typeof given === 'string' && SANE_ID.test(given)) return given
    requests++
    return `${app}-${requests}`
  }
}

/** Flat headers from a record. */
export function toFlat(headers: Readonly<Record<string, string>>): FlatHeaders {
  return Object.entries(headers).flat()
}

/** Headers that stand whatever answers the request. */
export function setHeaders(response: ServerResponse, headers: FlatHeaders): void {
  for (let at = 0; at < headers.length; at += 2) response.setHeader(String(headers[at]), String(headers[at + 1]))
}
