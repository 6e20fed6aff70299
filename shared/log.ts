import { trace } from '@opentelemetry/api'
import { type Logger, pino } from 'pino'
import { toLogFields } from './spans.ts'

export type { Logger }

/**
 * A JSON logger on standard error, so that standard output stays free for reports and progress bars. Lines written in a
 * trace carry its `trace_id` and `span_id`.
 */
export function createLog(process: string, level: string): Logger {
  const mixin = () => toLogFields(trace.getActiveSpan())
  return pino({ level, base: { process }, redact: ['*.apiKey', '*.password', 'headers.*'], mixin }, pino.destination(2))
}
