import { LRUCache } from 'lru-cache'
import { type Format, findFormat } from '../answers/formats.ts'
import type { Route } from '../route/define-route.ts'
import type { ApiMetrics, RouteMeters } from './request-metrics.ts'

/** What a raw URL meant when it was parsed. */
interface KnownUrl {
  readonly route: Route
  /** The key of its answer, and the version of the registry that it was found with. */
  readonly key: string
  readonly basis: string
  readonly meters: RouteMeters
  readonly format: Format
  /** Whether the URL itself names the format. */
  readonly isNamed: boolean
}

/** Which answers raw URLs have: parsing one again would give the same key. */
export interface KnownUrls {
  add(url: string, meant: Omit<KnownUrl, 'meters'>): void
  /** What a URL means to a client with this `Accept`; undefined where only parsing tells. */
  find(url: string, accept: string | undefined): KnownUrl | undefined
}

const MAX_KNOWN_URLS = 20_000
const MAX_KNOWN_URL_LENGTH = 512

/** Whether a known URL means the same to a client with this `Accept`. */
function isWished({ route, format, isNamed }: KnownUrl, accept: string | undefined): boolean {
  if (route.record === undefined) return route.accepts(accept)
  return isNamed || findFormat(accept) === format
}

/** `basis` is the version of the registry now: with another one a name may be another's, or nobody's. */
export function createKnownUrls(metrics: ApiMetrics, basis: () => string): KnownUrls {
  const known = new LRUCache<string, KnownUrl>({ max: MAX_KNOWN_URLS })
  return {
    add: (url, meant) => {
      // The answers of a volatile route are never kept.
      if (meant.route.volatile || url.length > MAX_KNOWN_URL_LENGTH) return
      const { route, key, basis: foundWith, format, isNamed } = meant
      // One by one: a copy of another object would have a shape of its own, which takes more than it tells.
      known.set(url, { route, key, basis: foundWith, meters: metrics.of(route.path), format, isNamed })
    },
    find: (url, accept) => {
      const meant = known.get(url)
      return meant !== undefined && meant.basis === basis() && isWished(meant, accept) ? meant : undefined
    },
  }
}
