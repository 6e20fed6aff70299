import type { IncomingMessage } from 'node:http'
import type { Allowance } from '../../shared/keys/allowance.ts'
import type { ToClient } from '../http/client-address.ts'
import type { FlatHeaders } from '../http/headers.ts'
import { Problem } from '../problem/problem.ts'
import type { Counting, Standing } from './counting.ts'
import type { Holder, KeyRing } from './key-ring.ts'

/** The client of a request and its limit. */
export interface Caller {
  /** Holder of the request's key; undefined without a key. */
  readonly holder: Holder | undefined
  readonly allowance: Allowance
  /** State of the caller's window after this request. */
  readonly standing: Standing
  /** Counts an additional request that another request of the caller requires. */
  charge(): Promise<Admission>
}

/** The decision whether a request may proceed, and the limit's headers for its answer. */
export interface Admission {
  readonly caller: Caller | undefined
  readonly headers: FlatHeaders
  /** The error if the request is rejected. */
  readonly refusal?: unknown
}

export interface Gate {
  /**
   * Counts a request and decides whether it may proceed. Calls `then` synchronously if no limit applies, else after
   * counting.
   */
  admit(request: IncomingMessage, then: (admission: Admission) => void): void
}

const UNLIMITED: Admission = { caller: undefined, headers: [] }

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

function toRefusal({ requests, seconds }: Allowance, { resetMs }: Standing): Problem {
  const detail = `${requests} requests in ${seconds} seconds are used up.`
  return new Problem('rate_limited', detail, { headers: { 'Retry-After': String(Math.max(1, toSeconds(resetMs))) } })
}

const invalidKey = () =>
  new Problem('invalid_key', 'The key of this request is none of this service, or was revoked.', {
    headers: { 'WWW-Authenticate': 'Bearer' },
  })

export interface GateOptions {
  readonly keys: KeyRing | undefined
  /** Allowance of an address without a key; undefined means unlimited. */
  readonly anonymous: Allowance | undefined
  readonly counting: Counting
  readonly toClient: ToClient
  /** Called for each request over its limit, and for each that could not be counted; not for a wrong key alone. */
  readonly refused: () => void
}

/** Creates the rate limiter for keys and addresses; undefined if neither keys nor limits are configured. */
export function createGate({ keys, anonymous, counting, toClient, refused }: GateOptions): Gate | undefined {
  if (keys === undefined && anonymous === undefined) return undefined
  return {
    admit: (request, then) => {
      if (isFree(request)) return then(UNLIMITED)
      const key = keys === undefined ? undefined : toKey(request)
      const holder = key === undefined ? undefined : keys?.find(key)
      // A request with a wrong key counts for its address: otherwise a wrong key would bypass the limit.
      const refusal = key !== undefined && holder === undefined ? { refusal: invalidKey() } : {}
      const allowance = holder?.allowance ?? anonymous
      if (allowance === undefined) return then({ ...UNLIMITED, ...refusal })
      const policy = holder === undefined ? 'address' : 'key'
      const who = `${policy}:${holder?.id ?? toClient(request)}`
      const count = (admit: typeof then) =>
        counting.count(who, allowance, (standing, error) => {
          const caller: Caller = { holder, allowance, standing, charge: () => new Promise(count) }
          const headers = error === undefined ? toHeaders(policy, allowance, standing) : []
          if (standing.isWithin) return admit({ caller, headers, ...refusal })
          refused()
          admit({ caller, headers, refusal: error ?? toRefusal(allowance, standing) })
        })
      count(then)
    },
  }
}
