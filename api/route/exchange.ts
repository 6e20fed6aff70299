import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FlatHeaders } from '../http/headers.ts'
import type { Caller } from '../limits/gate.ts'

/** One request and what is known of it on the way to its response. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly requestId: string
  readonly startedAt: number
  /** Extra headers, such as the `Link` of an alias. */
  readonly extra: FlatHeaders
  /** Who asks, and what the answer says of the limit; undefined where requests are not limited. */
  caller?: Caller | undefined
  limit?: FlatHeaders
}

/** Connects a client to the stream of commits. Undefined is every dataset. */
export type Connect = (exchange: Exchange, datasets: readonly string[] | undefined) => void
