import type { IncomingHttpHeaders } from 'node:http'
import type { World } from './world.ts'

/** A request as received by a provider: `path` starts after the provider's mount point, `now` is Unix milliseconds. */
export interface UpstreamRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly now: number
  /** Whether the provider enforces its free plan; `open` has no limits. */
  readonly plan: Plan
}

export type Plan = 'open' | 'free'

export interface Reply {
  readonly status: number
  readonly body: string
  /** The body is bytes, one per character. */
  readonly isBinary?: boolean
  readonly headers: Readonly<Record<string, string>>
}

/**
 * One provider, mounted under `/<name>`. `handle` responds in its wire format. `failure` is the response for an error
 * status. `empty` is its success without data, a failure that looks like a success.
 */
export interface Provider {
  readonly name: string
  handle(request: UpstreamRequest, world: World): Reply | Promise<Reply>
  failure(status: number, now: number): Reply
  /** The response if the plan's day is used up; by default that for too many requests. */
  exhausted?(): Reply
  empty(request: UpstreamRequest): Reply
}

export function jsonReply(value: unknown, status = 200): Reply {
  return rawJsonReply(JSON.stringify(value), status)
}

/** For bodies that are JSON text already. */
export function rawJsonReply(body: string, status = 200): Reply {
  return { status, body, headers: { 'content-type': 'application/json; charset=utf-8' } }
}

export function textReply(body: string, status = 200): Reply {
  return { status, body, headers: { 'content-type': 'text/plain; charset=utf-8' } }
}

export function htmlReply(body: string, status = 200): Reply {
  return { status, body, headers: { 'content-type': 'text/html; charset=utf-8' } }
}
