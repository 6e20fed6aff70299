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

/** Connects a client to the change stream. Undefined means every dataset. */
export type Connect = (context: RequestContext, datasets: readonly string[] | undefined) => void
