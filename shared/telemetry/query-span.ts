import { finished, Readable } from 'node:stream'
import { ClickHouseError } from '@clickhouse/client'
import { type Span, SpanKind } from '@opentelemetry/api'
import { recordFailure, startStep, toErrorType, toTraceparent, within } from './spans.ts'

/** A statement as described by its span: with placeholders, never with bound values. */
export interface TracedStatement {
  readonly name: string
  readonly operation: string
  readonly url: string
  readonly database: string
  readonly sql?: string
  readonly table?: string
  readonly signal?: AbortSignal | undefined
}

/** Access to the span for a traced statement. */
export interface QueryTrace {
  /**
   * Headers to send with the statement, so that the server's spans (`system.opentelemetry_span_log`) join the trace.
   */
  readonly headers: Record<string, string>
  rows(count: number): void
}

/**
 * Runs a statement in its own span if a trace is active. The span of a stream ends after its last byte. Statements
 * outside a request or job, such as health checks, are not traced.
 */
export async function inQuerySpan<T>(
  statement: TracedStatement,
  work: (trace: QueryTrace | undefined) => Promise<T>,
): Promise<T> {
  const span = startStep(statement.name, () => describe(statement))
  if (span === undefined) return work(undefined)
  const end = (error?: unknown) => {
    const isFailure =
      error !== undefined && error !== null && toErrorType(error) !== CLOSED_EARLY && !statement.signal?.aborted
    if (isFailure) recordQueryFailure(span, error)
    span.end()
  }
  try {
    const trace = {
      headers: { traceparent: toTraceparent(span) },
      rows: (count: number) => void span.setAttribute(ROWS, count),
    }
    const result = await within(span, () => work(trace))
    if (result instanceof Readable) finished(result, end)
    else end()
    return result
  } catch (error) {
    end(error)
    throw error
  }
}

/** Error code of a stream that its reader closed early. */
const CLOSED_EARLY = 'ERR_STREAM_PREMATURE_CLOSE'
const ROWS = 'db.response.returned_rows'

function describe({ name, operation, url, database, sql, table }: TracedStatement) {
  const { hostname, port } = new URL(url)
  return {
    kind: SpanKind.CLIENT,
    attributes: {
      'db.system.name': 'clickhouse',
      'db.namespace': database,
      'db.operation.name': operation,
      'db.query.summary': name,
      ...(sql === undefined ? {} : { 'db.query.text': sql.trim() }),
      ...(table === undefined ? {} : { 'db.collection.name': table }),
      'server.address': hostname,
      ...(port === '' ? {} : { 'server.port': Number(port) }),
    },
  }
}

function recordQueryFailure(span: Span, error: unknown): void {
  recordFailure(span, error)
  const cause = error instanceof Error ? error.cause : undefined
  const refusal = [error, cause].find((one) => one instanceof ClickHouseError)
  if (refusal !== undefined) span.setAttribute('db.response.status_code', refusal.code)
}
