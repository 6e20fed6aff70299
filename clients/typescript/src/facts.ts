/** What the headers of an answer say of it. */
export interface Facts {
  /** The newest time in it. */
  readonly asOf: Date | undefined
  /** Whether that is older than twice the time in which the data is refreshed. */
  readonly isStale: boolean
  /** How many records fit, whatever the limit. */
  readonly total: number | undefined
  /** The cursor of the next page; undefined on the last one. */
  readonly next: string | undefined
  /** The interval of a series. */
  readonly interval: string | undefined
  /** Points of a series. */
  readonly points: number | undefined
  /** Due buckets of the range without an observation. */
  readonly missing: number | undefined
  /** Buckets whose observations are coarser than the interval. */
  readonly coarse: number | undefined
  /** The same tag, the same bytes. */
  readonly tag: string | undefined
  /** What to report a failure with. */
  readonly requestId: string | undefined
}

/** An answer with what its headers say of it. */
export interface Answer<Body> {
  readonly data: Body
  readonly facts: Facts
}

/** Behind a proxy the link's path may be another one than the client's: only its cursor is read. */
function toNext(link: string | undefined): string | undefined {
  const target = /<([^>]+)>\s*;\s*rel="next"/.exec(link ?? '')?.[1]
  return (target && new URLSearchParams(target.replace(/^[^?]*/, '')).get('cursor')) ?? undefined
}

/** The facts that an answer's headers tell; what they do not tell is undefined. */
export function toFacts(headers: Headers): Facts {
  const text = (name: string) => headers.get(name) ?? undefined
  const number = (name: string) => (headers.has(name) ? Number(headers.get(name)) : undefined)
  const asOf = text('x-data-as-of')
  return {
    asOf: asOf === undefined ? undefined : new Date(asOf),
    isStale: text('x-data-stale') === 'true',
    total: number('x-total-count'),
    next: toNext(text('link')),
    interval: text('x-series-interval'),
    points: number('x-series-points'),
    missing: number('x-series-missing'),
    coarse: number('x-series-coarse'),
    tag: text('etag'),
    requestId: text('x-request-id'),
  }
}
