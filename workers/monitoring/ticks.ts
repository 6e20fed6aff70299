import { type ScheduledTask, schedule } from 'node-cron'
import { toReason } from '../../shared/errors.ts'
import type { Logger } from '../../shared/telemetry/log.ts'

export interface Ticks {
  /** Resolves when no tick is running. */
  stop(): Promise<void>
}

/** Interval of the clock check. */
const CLOCK_CHECK_MS = 1_000
/** Difference between clock time and elapsed time from which the clock counts as moved. */
const MOVED_MS = 1_000

/** Returns the clock time minus the elapsed process time. Constant until the clock is moved. */
const toOffset = () => Date.now() - performance.now()

/**
 * Calls `tick` on a cron expression with seconds, in UTC, never concurrently. A moved clock only changes the time of
 * the next tick. After a move of the clock a new schedule is needed: node-cron waits for the clock to reach the next
 * computed time, which after a step back takes as long as the step; after a sleep it would report each missed tick.
 * Messages of node-cron go to the log.
 */
export function startTicks(expression: string, tick: () => Promise<void>, log: Logger): Ticks {
  const logAt = (level: 'info' | 'warn' | 'error' | 'debug') => (message: string | Error, error?: Error) =>
    log[level]({ ticks: expression, ...(error === undefined ? {} : { err: error }) }, toReason(message))
  const logger = { info: logAt('info'), warn: logAt('warn'), error: logAt('error'), debug: logAt('debug') }
  // node-cron cannot prevent overlap here, because each new task starts without knowledge of the previous one.
  let underWay: Promise<void> | undefined
  const runOnce = async () => {
    if (underWay !== undefined) return logger.warn('previous tick is still running')
    underWay = tick()
    try {
      await underWay
    } finally {
      underWay = undefined
    }
  }
  let missed = 0
  const reportMissed = () => {
    logger.warn(`missed ${missed} ticks: the process was held up`)
    missed = 0
  }
  const open = (): ScheduledTask => {
    const task = schedule(expression, runOnce, { timezone: 'UTC', logger, suppressMissedWarning: true })
    task.on('execution:missed', () => {
      // Logs all ticks missed in one turn of the event loop in one line.
      if (missed === 0) setImmediate(reportMissed)
      missed += 1
    })
    return task
  }
  let task = open()
  let offset = toOffset()
  const watching = setInterval(() => {
    const movedMs = toOffset() - offset
    offset += movedMs
    if (Math.abs(movedMs) < MOVED_MS) return
    void task.destroy()
    task = open()
    log.warn(
      { ticks: expression, movedMs: Math.round(movedMs) },
      'the clock was changed: ticks continue at the new time',
    )
  }, CLOCK_CHECK_MS)
  watching.unref()
  return {
    stop: async () => {
      clearInterval(watching)
      await task.destroy()
      // The failure is logged by the caller that started the tick.
      await underWay?.catch(() => undefined)
    },
  }
}
