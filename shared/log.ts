import { type Logger, pino } from 'pino'

export type { Logger }

/** A JSON logger on standard error, so that standard output stays free for reports and progress bars. */
export function createLog(process: string, level: string): Logger {
  return pino({ level, base: { process }, redact: ['*.apiKey', '*.password', 'headers.*'] }, pino.destination(2))
}
