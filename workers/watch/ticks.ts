import { schedule } from 'node-cron'
import { toReason } from '../../shared/errors.ts'
import type { Logger } from '../../shared/telemetry/log.ts'

export interface Ticks {
  /** Resolves when no tick is under way any more. */
  stop(): Promise<void>
}

/**
 * Calls `tick` by a cron expression with seconds, in UTC, one at a time. What the clock has to say, such as of ticks that
 * a busy machine missed, goes into the log like everything else.
 */
export function startTicks(expression: string, tick: () => Promise<void>, log: Logger): Ticks {
  const tell = (level: 'info' | 'warn' | 'error' | 'debug') => (message: string | Error, error?: Error) =>
    log[level]({ ticks: expression, ...(error === undefined ? {} : { err: error }) }, toReason(message))
  const logger = { info: tell('info'), warn: tell('warn'), error: tell('error'), debug: tell('debug') }
  const task = schedule(expression, tick, { noOverlap: true, timezone: 'UTC', logger })
  return { stop: async () => void (await task.destroy()) }
}
