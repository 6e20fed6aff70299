import type { IncomingMessage } from 'node:http'
import type { Allowance } from '../../shared/keys/allowance.ts'
import type { ToClient } from '../http/client-address.ts'
import type { FlatHeaders } from '../http/headers.ts'
import { Problem } from '../problem/problem.ts'
import type { Counting, Standing } from './counting.ts'
import type { Holder, KeyRing } from './key-ring.ts'

/** Who asks, as far as limits go. */
export interface Caller {
  /** Whose key came with the request; undefined without one. */
  readonly holder: Holder | undefined
  readonly allowance: Allowance
  /** How the caller's window stood after this request. */
  readonly standing: Standing
  /** Counts one more request of the caller, which another request needs. */
  charge(): Promise<Admission>
}

/** Whether a request may go on, and what its answer says of the limit. */
export interface Admission {
  readonly caller: Caller | undefined
  readonly headers: FlatHeaders
  /** Why it may not. */
  readonly refusal?: unknown
}

export interface Gate {
  /** Counts a request and tells whether it may go on: at once where there is no limit for it, or once it is known. */
  admit(request: IncomingMessage, then: (admission: Admission) => void): void
}

const UNLIMITED: Admission = { caller: undefined, headers: [] }

const BEARER = /^Bearer\s+(\S+)$/i

/** The key that a request comes with. */
function toKey({ headers }: IncomingMessage): string | undefined {
  const own = headers['x-api-key']
  if (own !== undefined) return String(own)
  return BEARER.exec(headers.authorization ?? '')?.[1]
}

/** Load balancers ask about health as often as they like, and browsers whether they may ask. */
const isFree = ({ method, url = '' }: IncomingMessage) => method === 'OPTIONS' || url.startsWith('/health/')

const toSeconds = (ms: number) => Math.max(0, Math.ceil(ms / 1000))

/** The fields of the IETF's draft on rate limits (draft-ietf-httpapi-ratelimit-headers). */
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
  /** What an address may that comes without a key; undefined is everything. */
  readonly anonymous: Allowance | undefined
  readonly counting: Counting
  readonly toClient: ToClient
  /** Called for each request over its limit, and for each that could not be counted; not for a wrong key alone. */
  readonly refused: () => void
}

/** Admits requests within the limits of their keys or addresses; undefined where neither keys nor limits are set. */
export function createGate({ keys, anonymous, counting, toClient, refused }: GateOptions): Gate | undefined {
  if (keys === undefined && anonymous === undefined) return undefined
  return {
    admit: (request, then) => {
      if (isFree(request)) return then(UNLIMITED)
      const key = keys === undefined ? undefined : toKey(request)
      const holder = key === undefined ? undefined : keys?.find(key)
      // A wrong key counts for its address: it must not be a way around the limit.
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
