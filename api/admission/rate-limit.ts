import type { IncomingMessage } from 'node:http'
import type { Allowance } from '../../shared/keys/allowance.ts'
import type { ToClient } from '../http/client-address.ts'
import type { FlatHeaders } from '../http/headers.ts'
import { Problem } from '../problem/problem.ts'
import type { Caller, RateDecision, RateLimiter, RateLimits, Standing } from './types.ts'

const UNLIMITED: RateDecision = { caller: undefined, headers: [] }

const BEARER = /^Bearer\s+(\S+)$/i

/** The key in a request. */
function toKey({ headers }: IncomingMessage): string | undefined {
  const own = headers['x-api-key']
  if (own !== undefined) return String(own)
  return BEARER.exec(headers.authorization ?? '')?.[1]
}

/** Health checks of load balancers and preflight requests of browsers are not counted. */
const isFree = ({ method, url = '' }: IncomingMessage) => method === 'OPTIONS' || url.startsWith('/health/')

const toSeconds = (ms: number) => Math.max(0, Math.ceil(ms / 1000))

/** The fields of the IETF draft on rate limits (draft-ietf-httpapi-ratelimit-headers). */
function toHeaders(policy: string, { requests, seconds }: Allowance, { remaining, resetMs }: Standing): FlatHeaders {
  return [
    ...['RateLimit-Policy', `"${policy}";q=${requests};w=${seconds}`],
    ...['RateLimit', `"${policy}";r=${remaining};t=${toSeconds(resetMs)}`],
  ]
}

function toRejection({ requests, seconds }: Allowance, { resetMs }: Standing): Problem {
  const detail = `${requests} requests in ${seconds} seconds are used up.`
  return new Problem('rate_limited', detail, { headers: { 'Retry-After': String(Math.max(1, toSeconds(resetMs))) } })
}

const invalidKey = () =>
  new Problem('invalid_key', 'The key of this request is none of this service, or was revoked.', {
    headers: { 'WWW-Authenticate': 'Bearer' },
  })

interface RateLimiterOptions extends RateLimits {
  readonly clientKeyOf: ToClient
  /** Called for each request over its limit, and for each that could not be counted; not for a wrong key alone. */
  readonly rejected: () => void
}

/** Creates the rate limiter for keys and addresses; undefined if neither keys nor limits are configured. */
export function createRateLimiter(options: RateLimiterOptions): RateLimiter | undefined {
  const { keys, anonymous, counting, clientKeyOf, rejected } = options
  if (keys === undefined && anonymous === undefined) return undefined
  return (request, then) => {
    if (isFree(request)) return then(UNLIMITED)
    const key = keys === undefined ? undefined : toKey(request)
    const holder = key === undefined ? undefined : keys?.find(key)
    // A request with a wrong key counts for its address: otherwise a wrong key would bypass the limit.
    const rejection = key !== undefined && holder === undefined ? { rejection: invalidKey() } : {}
    const allowance = holder?.allowance ?? anonymous
    if (allowance === undefined) return then({ ...UNLIMITED, ...rejection })
    const policy = holder === undefined ? 'address' : 'key'
    const who = `${policy}:${holder?.id ?? clientKeyOf(request)}`
    const count = (decide: typeof then, units = 1) =>
      counting.count({ client: who, allowance, units }, (standing, error) => {
        const charge: Caller['charge'] = (more) => new Promise((resolve) => count(resolve, more))
        const caller: Caller = { holder, allowance, standing, charge }
        const headers = error === undefined ? toHeaders(policy, allowance, standing) : []
        if (standing.isWithin) return decide({ caller, headers, ...rejection })
        rejected()
        decide({ caller, headers, rejection: error ?? toRejection(allowance, standing) })
      })
    count(then)
  }
}
