import { type Attributes, context, isSpanContextValid, type Span, SpanStatusCode, trace } from '@opentelemetry/api'
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
