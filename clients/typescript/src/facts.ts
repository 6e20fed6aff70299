/** Metadata from the headers of an answer. */
export interface Facts {
  /** The newest time in the data. */
  readonly asOf: Date | undefined
  /** Whether that is older than twice the refresh cadence of the data. */
  readonly isStale: boolean
  /** Number of matching records, independent of the limit. */
  readonly total: number | undefined
  /** The cursor of the next page; undefined on the last one. */
  readonly next: string | undefined
  /** The interval of a series. */
  readonly interval: string | undefined
  /** Number of points of a series. */
  readonly points: number | undefined
  /** Number of due buckets of the range without an observation. */
  readonly missing: number | undefined
  /** Number of buckets with observations coarser than the interval. */
  readonly coarse: number | undefined
  /** The entity tag: equal tags mean equal bytes. */
  readonly tag: string | undefined
  /** The id to quote when reporting a failure. */
  readonly requestId: string | undefined
}

/** An answer with the metadata from its headers. */
export interface Answer<Body> {
  readonly data: Body
  readonly facts: Facts
}

/** Behind a proxy the link's path may differ from the client's, so only its cursor is used. */
function toNext(link: string | undefined): string | undefined {
  const target = /<([^>]+)>\s*;\s*rel="next"/.exec(link ?? '')?.[1]
  return (target && new URLSearchParams(target.replace(/^[^?]*/, '')).get('cursor')) ?? undefined
}

/** The metadata from an answer's headers; absent headers give undefined. */
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
