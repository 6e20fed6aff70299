import { type Attributes, context, isSpanContextValid, type Span, SpanStatusCode, trace } from '@opentelemetry/api'
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
