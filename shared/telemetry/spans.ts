import { finished, Readable } from 'node:stream'
import { ClickHouseError } from '@clickhouse/client'
import {
  type Attributes,
  context,
  isSpanContextValid,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { DataError } from '../errors.ts'

/** Creates this project's spans. Until tracing starts, spans are no-ops. */
export const tracer = trace.getTracer('dao-data')

/** The ids that link log lines and spans; empty outside of a trace. */
export function toLogFields(span: Span | undefined): { trace_id?: string; span_id?: string } {
  const ids = span?.spanContext()
  return ids !== undefined && isSpanContextValid(ids) ? { trace_id: ids.traceId, span_id: ids.spanId } : {}
}

/** The W3C header for trace context. ClickHouse and jobs use this header regardless of the configured propagators. */
export function toTraceparent(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext()
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
}

/** Runs `work` with `span` as the active span. */
export function within<T>(span: Span, work: () => T): T {
  return context.with(trace.setSpan(context.active(), span), work)
}

/** Starts a span for one step of an active trace. Undefined outside of a trace, because a step never starts one. */
export function startStep(name: string, describe: () => { kind: number; attributes: Attributes }): Span | undefined {
  return trace.getActiveSpan() === undefined ? undefined : tracer.startSpan(name, describe())
}

/** The type of a failure: the error's code, else its class. */
export function toErrorType(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

/**
 * Marks a span as failed. Includes only the message of a DataError, which never contains a key; other messages might.
 */
export function recordFailure(span: Span, error: unknown): void {
  const message = error instanceof DataError ? error.message : undefined
  span.setAttribute('error.type', toErrorType(error))
  span.addEvent('exception', {
    'exception.type': error instanceof Error ? error.name : typeof error,
    ...(message === undefined ? {} : { 'exception.message': message }),
  })
  span.setStatus({ code: SpanStatusCode.ERROR, ...(message === undefined ? {} : { message }) })
}

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
