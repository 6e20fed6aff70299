import { stderr } from 'node:process'
import { trace } from '@opentelemetry/api'
import { type Logger, pino } from 'pino'
import { toLogFields } from './spans.ts'

export type { Logger }

/**
 * A JSON logger on standard error, so that standard output contains only reports and progress bars. Lines written in a
 * trace have its `trace_id` and `span_id`. `redact` is applied to each finished line.
 */
export function createLog(process: string, level: string, redact = (line: string) => line): Logger {
  const mixin = () => toLogFields(trace.getActiveSpan())
  // pino's own destination would retry forever at exit if the reader has closed the pipe.
  const stream = { write: (line: string) => stderr.write(redact(line)) }
  return pino({ level, base: { process }, redact: ['*.apiKey', '*.password', 'headers.*'], mixin }, stream)
}
