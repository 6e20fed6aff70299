import { DAY_MS } from '../../shared/intervals.ts'
import type { FlatHeaders } from '../http/headers.ts'

/** What is said of a route that others replace. Days are UTC, as `2027-01-31`. */
export interface Deprecation {
  readonly since: string
  /** The first day on which it may be gone. */
  readonly sunset: string
  /** The path that is to be asked instead. */
  readonly instead: string
}

/** What would break is announced for so long at least (docs/contract.md, section 11). */
const LEAST_DAYS = 180

/** @throws Error when clients would have less time than they were promised. */
export function toDeprecated(deprecation: Deprecation): Deprecation {
  const days = (Date.parse(deprecation.sunset) - Date.parse(deprecation.since)) / DAY_MS
  if (days >= LEAST_DAYS) return deprecation
  throw new Error(
    `a deprecated route is served for ${LEAST_DAYS} days at least, not from ${deprecation.since} to ${deprecation.sunset}`,
  )
}

/** `Deprecation` (RFC 9745), `Sunset` (RFC 8594), and where to go. */
export const toDeprecationHeaders = ({ since, sunset, instead }: Deprecation): FlatHeaders => [
  ...['Deprecation', `@${Date.parse(since) / 1000}`],
  ...['Sunset', new Date(sunset).toUTCString()],
  ...['Link', `<${instead}>; rel="successor-version"`],
]
