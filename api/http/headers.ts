import type { ServerResponse } from 'node:http'

/**
 * Headers of data answers that scripts of other origins may read, with their descriptions (docs/contract.md, section
 * 6).
 */
export const ANSWER_HEADERS = {
  ETag: 'Strong entity tag of exactly these bytes; send it back as If-None-Match for a 304.',
  'Last-Modified': 'Time of the newest datum used; absent when the answer holds none.',
  'Cache-Control': 'For how long the answer may be reused, after how often its data is refreshed.',
  'X-Data-As-Of': 'Time of the newest datum used, as ISO 8601 UTC.',
  'X-Data-Stale': 'The text `true` once the data is older than twice its refresh cadence; absent otherwise.',
  'X-Request-Id': 'Id of the request: the one that the client sent, or a new one.',
  'Server-Timing': 'Duration of each step, in milliseconds.',
} as const

/** The headers of every answer if requests are limited (draft-ietf-httpapi-ratelimit-headers). */
export const LIMIT_HEADERS = {
  'RateLimit-Policy':
    'Where requests are limited: how many (`q`) in how many seconds (`w`) the key or the address may.',
  RateLimit: 'If requests are limited: the remaining requests (`r`), and the seconds until the next window (`t`).',
} as const

/** The headers of series answers. */
export const SERIES_HEADERS = {
  'X-Series-Interval': 'The interval of the series.',
  'X-Series-Points': 'How many points the answer holds.',
  'X-Series-Missing': 'How many buckets of the range have no observation although their collection is due.',
} as const

/** The additional header of series with sources that may have a coarser step than the requested one. */
export const COARSE_HEADERS = {
  'X-Series-Coarse': 'Number of points whose observation covers more time than the requested interval.',
} as const

/** Their values: the number of such points. */
export const toCoarseHeaders = (points: number): Record<keyof typeof COARSE_HEADERS, string> => ({
  'X-Series-Coarse': String(points),
})

/** The headers of answers in another format than JSON. */
export const RECORD_HEADERS = {
  'Content-Disposition': 'A name for the file; absent for JSON.',
} as const

/** The headers of answers that support range requests: Parquet and Arrow, which clients read in parts. */
export const RANGE_HEADERS = {
  'Accept-Ranges': '`bytes` for Parquet and Arrow: `Range` takes one range of them (RFC 9110, section 14).',
  'Content-Range': 'Which bytes these are, and of how many; with 206 and 416 only.',
} as const

/** The header of paged answers. */
export const PAGE_HEADERS = {
  Link: '`rel="next"`: URL of the next page, if there is one. `rel="canonical"`: the canonical path.',
} as const

/** The header of lists. */
export const LIST_HEADERS = {
  'X-Total-Count': 'Number of matching records, regardless of `limit`.',
} as const

/** The headers of the Index's composition. Contributions and rebalancing sum to the change. */
export const INDEX_HEADERS = {
  'X-Index-Value': 'Value of the basket in US dollars: the value of the slot in `/data/index/historic`.',
  'X-Index-Change-24h': 'Change of that value over 24 hours, in percent; absent where there was none.',
  'X-Index-Rebalance-24h': 'Part of that change that new compositions caused, not prices, in percentage points.',
  'X-Index-Change': 'With `days`: the change over these days, in percent; absent where there was no value before.',
  'X-Index-Rebalance': 'With `days`: the part of that change that new compositions caused, in percentage points.',
  'X-Index-Since': 'With `days`: the start of the slot from which the change is computed.',
} as const

/** The headers of a treasury's holdings. */
export const HOLDING_HEADERS = {
  'X-Price-Sources': 'Providers of the prices behind the values, separated by commas.',
  'X-Spam-Count': 'Number of tokens omitted as spam; `unknown` if the source does not report it.',
} as const

const EXPOSED = [
  ...[
    ...[ANSWER_HEADERS, SERIES_HEADERS, COARSE_HEADERS],
    ...[RECORD_HEADERS, RANGE_HEADERS, PAGE_HEADERS, LIST_HEADERS, INDEX_HEADERS, HOLDING_HEADERS, LIMIT_HEADERS],
  ].flatMap((headers) => Object.keys(headers)),
  'Retry-After',
].join(', ')

/** Header names and values alternate, as `writeHead` expects. */
export type FlatHeaders = readonly string[]

/** The headers of every response. */
export const FIXED_HEADERS: FlatHeaders = [
  ...['Access-Control-Allow-Origin', '*'],
  ...['Access-Control-Expose-Headers', EXPOSED],
  ...['X-Content-Type-Options', 'nosniff'],
]

/** Header names separated by commas (RFC 9110, section 5.6.2). */
const HEADER_NAMES = /^[\w!#$%&'*+.^`|~-]+(\s*,\s*[\w!#$%&'*+.^`|~-]+)*$/

/**
 * The answer to a browser's preflight request: all headers are allowed, because answers do not depend on the client
 * (docs/contract.md, section 8). The requested names are repeated, because `*` does not cover all of them.
 */
export function toPreflightHeaders(allow: string, requested: string | undefined): FlatHeaders {
  const named = requested !== undefined && HEADER_NAMES.test(requested) ? requested : '*'
  return [
    ...['Allow', allow],
    ...['Access-Control-Allow-Methods', allow],
    ...['Access-Control-Allow-Headers', named],
    ...['Access-Control-Max-Age', '86400'],
    ...['Vary', 'Access-Control-Request-Headers'],
  ]
}

/** Converts a record to flat headers. */
export function toFlat(headers: Readonly<Record<string, string>>): FlatHeaders {
  return Object.entries(headers).flat()
}

/** Sets headers for any kind of response. */
export function setHeaders(response: ServerResponse, headers: FlatHeaders): void {
  for (let at = 0; at < headers.length; at += 2) response.setHeader(String(headers[at]), String(headers[at + 1]))
}
