import type { IncomingMessage } from 'node:http'
import type { Allowance } from '../../shared/keys/allowance.ts'
import type { Holder, KeyRing } from '../../shared/keys/key-ring.ts'
import type { FlatHeaders } from '../http/headers.ts'

/** Identifies a client: its address, or its network for IPv6. */
export type ClientKey = string

/** Releases a slot. Repeated calls have no effect. */
export type Release = () => void

/** A request for a slot of a queue. */
export interface Ticket {
  /** Resolves when a slot is assigned. Rejects when the queue rejects the request, or with the reason of its signal. */
  readonly turn: Promise<Release>
  /** Another client requests the same work: the request takes the better of the two positions. */
  alsoFor(client: ClientKey): void
}

/** A limited number of slots, with one bounded line per client. The clients take turns. */
export interface FairQueue {
  /**
   * Rejects a request of a heavy client that `enter` would reject, before its parameters are parsed. A client is heavy if
   * many of its requests waited during all of the last second. Requests of other clients may be answered from the caches.
   * @throws Problem `unavailable`
   */
  rejectEarly(client: ClientKey): void
  /**
   * Requests a slot. If the signal is aborted before its turn, the request leaves the queue immediately.
   * @throws Problem `unavailable` if the request would have to wait too long, or the reason of an aborted signal.
   */
  enter(client: ClientKey, signal: AbortSignal): Ticket
}

/** Shares the event loop among clients: each has a limited number of tasks in one of its turns. */
export interface Turns {
  /** Starts the work now; in a later turn of the event loop if the client has had its share of this one. */
  take(client: ClientKey, work: () => void): void
}

/** Counts a request and decides whether it may proceed. Calls `then` synchronously if the decision is known. */
export type RateLimiter = (request: IncomingMessage, then: (decision: RateDecision) => void) => void

/** The decision whether a request may proceed, and the limit's headers for its answer. */
export interface RateDecision {
  readonly caller: Caller | undefined
  readonly headers: FlatHeaders
  /** The error if the request is rejected. */
  readonly rejection?: unknown
}

/** State of a client's window after a request was counted. */
export interface Standing {
  readonly isWithin: boolean
  /** Remaining requests in the window. */
  readonly remaining: number
  /** Milliseconds until the next window begins. */
  readonly resetMs: number
}

/** The client of a request and its limit. */
export interface Caller {
  /** Holder of the request's key; undefined without a key. */
  readonly holder: Holder | undefined
  readonly allowance: Allowance
  readonly standing: Standing
  /**
   * Counts additional units of a request, or a further request that it requires. The request may proceed if one unit
   * remained.
   */
  charge(units?: number): Promise<RateDecision>
}

export interface RateLimits {
  readonly keys: KeyRing | undefined
  /** Allowance of an address without a key; undefined means unlimited. */
  readonly anonymous: Allowance | undefined
  readonly counting: Counting
}

export interface Counting {
  /**
   * Counts units of a client, and reports the state of its window. All units are within the limit if the first one is.
   */
  count(request: Charge, onCounted: OnCounted): void
  /** Whether all processes count together, which means that Redis accepts writes now. */
  isShared(): Promise<boolean>
}

export type OnCounted = (standing: Standing, error?: unknown) => void

/** Units to count for a client. */
export interface Charge {
  readonly client: string
  readonly allowance: Allowance
  readonly units: number
}
