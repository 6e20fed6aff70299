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

/** Makes this project's spans. Until tracing is started they cost next to nothing and go nowhere. */
export const tracer = trace.getTracer('dao-data')

/** The ids by which log lines and spans find each other; nothing outside of a trace. */
export function toLogFields(span: Span | undefined): { trace_id?: string; span_id?: string } {
  const ids = span?.spanContext()
  return ids !== undefined && isSpanContextValid(ids) ? { trace_id: ids.traceId, span_id: ids.spanId } : {}
}

/** W3C's header that names a span to others. ClickHouse and jobs speak this one, whatever propagators are set. */
export function toTraceparent(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext()
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
}

/** Runs `work` with `span` as the one that is active. */
export function within<T>(span: Span, work: () => T): T {
  return context.with(trace.setSpan(context.active(), span), work)
}

/** A span for one step of what is being traced. Undefined outside of a trace: a step does not begin one. */
export function startStep(name: string, describe: () => { kind: number; attributes: Attributes }): Span | undefined {
  return trace.getActiveSpan() === undefined ? undefined : tracer.startSpan(name, describe())
}

/** What tells failures apart: the code where an error has one, else its class. */
export function toErrorType(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

/** Marks a span as failed. Only a DataError's message is shown, because it never holds a key; another error's might. */
export function recordFailure(span: Span, error: unknown): void {
  const message = error instanceof DataError ? error.message : undefined
  span.setAttribute('error.type', toErrorType(error))
  span.addEvent('exception', {
    'exception.type': error instanceof Error ? error.name : typeof error,
    ...(message === undefined ? {} : { 'exception.message': message }),
  })
  span.setStatus({ code: SpanStatusCode.ERROR, ...(message === undefined ? {} : { message }) })
}

/** A statement as its span tells of it: with placeholders, never with the values bound to them. */
export interface TracedStatement {
  readonly name: string
  readonly operation: string
  readonly url: string
  readonly database: string
  readonly sql?: string
  readonly table?: string
  readonly signal?: AbortSignal | undefined
}

/** What the work gets when it is traced. */
export interface QueryTrace {
  /** To be sent along, so that the server's own spans (`system.opentelemetry_span_log`) join the trace. */
  readonly headers: Record<string, string>
  rows(count: number): void
}

/**
 * Runs a statement in a span of its own when it is part of a trace. The span of a stream lasts until its last byte.
 * Statements outside of a request or job, such as health checks, are not traced.
 */
export async function inQuerySpan<T>(
  statement: TracedStatement,
  work: (trace: QueryTrace | undefined) => Promise<T>,
): Promise<T> {
  const span = startStep(statement.name, () => describe(statement))
  if (span === undefined) return work(undefined)
  const end = (error?: unknown) => {
    const isFailure = error !== undefined && error !== null && toErrorType(error) !== LEFT && !statement.signal?.aborted
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

/** The code of a stream whose reader wants no more of it. */
const LEFT = 'ERR_STREAM_PREMATURE_CLOSE'
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
