import type { IncomingHttpHeaders } from 'node:http'
import type { World } from './world.ts'

/** One request as a provider sees it: `path` starts after the provider's mount point, `now` is Unix milliseconds. */
export interface UpstreamRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly now: number
  /** Whether the provider holds to what its free plan has; `open` has everything. */
  readonly plan: Plan
}

export type Plan = 'open' | 'free'

export interface Reply {
  readonly status: number
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/**
 * One provider, mounted under `/<name>`. `handle` answers in its wire format; `failure` is the body it sends with an
 * error status; `empty` is its "success without data", the failure that looks like a success.
 */
export interface Provider {
  readonly name: string
  handle(request: UpstreamRequest, world: World): Reply | Promise<Reply>
  failure(status: number, now: number): Reply
  /** What it says when a plan's day is used up; like too many requests unless given. */
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
