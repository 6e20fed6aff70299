import { LRUCache } from 'lru-cache'
import { type Format, findFormat } from '../answers/formats.ts'
import type { Route } from '../route/define-route.ts'
import type { ApiMetrics, RouteMeters } from './request-metrics.ts'

/** The result of resolving a raw URL. */
interface KnownUrl {
  readonly route: Route
  /** The cache key of the answer, and the registry version that the URL was resolved with. */
  readonly key: string
  readonly basis: string
  readonly meters: RouteMeters
  readonly format: Format
  /** Whether the URL itself names the format. */
  readonly isNamed: boolean
}

/** The response cache's index from raw URLs to answer keys. Parsing the same URL again would give the same key. */
export interface KnownUrls {
  add(url: string, meant: Omit<KnownUrl, 'meters'>): void
  /** Returns the resolved URL for a client with this `Accept`; undefined if the URL must be parsed. */
  find(url: string, accept: string | undefined): KnownUrl | undefined
}

const MAX_KNOWN_URLS = 20_000
const MAX_KNOWN_URL_LENGTH = 512

/** Whether the resolved URL is also right for a client with this `Accept`. */
function isWished({ route, format, isNamed }: KnownUrl, accept: string | undefined): boolean {
  if (route.record === undefined) return route.accepts(accept)
  return isNamed || findFormat(accept) === format
}

/**
 * `basis` returns the current registry version. With another version a name may belong to another entity or to none.
 */
export function createKnownUrls(metrics: ApiMetrics, basis: () => string): KnownUrls {
  const known = new LRUCache<string, KnownUrl>({ max: MAX_KNOWN_URLS })
  return {
    add: (url, meant) => {
      // Answers of volatile routes are never cached.
      if (meant.route.volatile || url.length > MAX_KNOWN_URL_LENGTH) return
      const { route, key, basis: foundWith, format, isNamed } = meant
      // Properties are listed one by one: spreading another object would create a different object shape, which costs
      // more memory.
      known.set(url, { route, key, basis: foundWith, meters: metrics.of(route.path), format, isNamed })
    },
    find: (url, accept) => {
      const meant = known.get(url)
      return meant !== undefined && meant.basis === basis() && isWished(meant, accept) ? meant : undefined
    },
  }
}
