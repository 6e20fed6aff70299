import type { Logger } from '../../shared/telemetry/log.ts'
import { breakOff } from '../http/break-off.ts'
import { FIXED_HEADERS, toFlat } from '../http/headers.ts'
import { Problem, toProblem, toProblemBody } from '../problem/problem.ts'
import type { RequestContext } from '../route/request-context.ts'

/** Failed requests: their log lines and their responses. */
export interface Failures {
  /** Returns the problem for the client. A failure of the service itself is logged. */
  toProblem(requestId: string, error: unknown): Problem
  /** Sends the problem for the client, or aborts a response that has begun. */
  respond(context: RequestContext, error: unknown): void
  /** Logs why a stale answer could not be renewed, except that the service is busy. */
  noteRenewal(error: unknown): void
}

/** Whether a request is rejected because the service is busy or stopping. Such rejections are no failures. */
const isRejection = (error: unknown): error is Problem =>
  error instanceof Problem && error.status >= 500 && error.particulars.cause === undefined

const REJECTION_LOG_MS = 1_000

/** Logs rejections, at most one line per second: a line for each would cost more than the rejection. */
export function createRejectionLog(log: Logger) {
  let loggedAt = Number.NEGATIVE_INFINITY
  let unlogged = 0
  return {
    note: (fields: object, reason: string) => {
      unlogged += 1
      if (performance.now() - loggedAt < REJECTION_LOG_MS) return
      log.warn({ ...fields, reason, refused: unlogged }, 'refused')
      loggedAt = performance.now()
      unlogged = 0
    },
  }
}

/** The headers of a response whose body is this problem. */
export const toProblemHeaders = (problem: Problem, requestId: string, body: string): string[] => [
  ...FIXED_HEADERS,
  ...['X-Request-Id', requestId],
  ...['Content-Type', 'application/problem+json; charset=utf-8'],
  ...['Content-Length', String(Buffer.byteLength(body))],
  ...['Cache-Control', 'no-store'],
  ...toFlat(problem.particulars.headers ?? {}),
]

/** Sends a failure as problem+json. */
function sendProblem(context: RequestContext, problem: Problem, publicUrl: string): void {
  const { request, response, requestId } = context
  const instance = (request.url ?? '/').split('?', 1)[0] ?? '/'
  // A string body is sent in one write with the headers.
  const body = JSON.stringify(toProblemBody(problem, { publicUrl, instance, requestId }))
  response.writeHead(problem.status, toProblemHeaders(problem, requestId, body))
  response.end(request.method === 'HEAD' ? undefined : body)
}

export function createFailures(log: Logger, publicUrl: string): Failures {
  const rejections = createRejectionLog(log)
  const toLogged = (requestId: string, error: unknown): Problem => {
    const problem = toProblem(error)
    const fields = { requestId, code: problem.code }
    if (isRejection(error)) rejections.note(fields, error.message)
    else if (problem.status >= 500) log.error({ ...fields, err: error }, 'failed')
    return problem
  }
  return {
    toProblem: toLogged,
    respond: (context, error) => {
      const { requestId, response } = context
      if (!response.headersSent && !response.destroyed) {
        return sendProblem(context, toLogged(requestId, error), publicUrl)
      }
      breakOff(response)
      log.warn({ requestId, err: error }, 'response aborted after its headers were sent')
    },
    noteRenewal: (error) => {
      if (!isRejection(error)) log.warn({ err: error }, 'stale answer could not be renewed')
    },
  }
}
