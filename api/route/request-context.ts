import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller } from '../admission/admission.ts'
import type { FlatHeaders } from '../http/headers.ts'

/** The context of one request until its response. */
export interface RequestContext {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly requestId: string
  readonly startedAt: number
  /** Extra headers, such as the `Link` of an alias. */
  readonly extra: FlatHeaders
  /** The client and its limit, and the limit's headers; undefined if requests are not limited. */
  caller?: Caller | undefined
  limit?: FlatHeaders
}

/** The parameters of the change stream. Without `datasets` every dataset; `lastEventId` applies without its header. */
export interface StreamQuery {
  readonly datasets: readonly string[] | undefined
  readonly lastEventId: string | undefined
}

/** Connects a client to the change stream. */
export type Connect = (context: RequestContext, query: StreamQuery) => void
