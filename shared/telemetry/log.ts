import { stderr } from 'node:process'
import { trace } from '@opentelemetry/api'
import { type Logger, pino } from 'pino'
import { toLogFields } from './spans.ts'

export type { Logger }

/**
 * A JSON logger on standard error, so that standard output stays free for reports and progress bars. Lines written in a
 * trace carry its `trace_id` and `span_id`. `redact` has the last word on each line.
 */
export function createLog(process: string, level: string, redact = (line: string) => line): Logger {
  const mixin = () => toLogFields(trace.getActiveSpan())
  // Not pino's own destination: at the exit of a process it would try for ever to write to a reader that is gone.
  const stream = { write: (line: string) => stderr.write(redact(line)) }
  return pino({ level, base: { process }, redact: ['*.apiKey', '*.password', 'headers.*'], mixin }, stream)
}
