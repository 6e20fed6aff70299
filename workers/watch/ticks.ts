import { type ScheduledTask, schedule } from 'node-cron'
import { toReason } from '../../shared/errors.ts'
import type { Logger } from '../../shared/telemetry/log.ts'

export interface Ticks {
  /** Resolves when no tick is under way any more. */
  stop(): Promise<void>
}

/** How often it is looked whether the clock was moved. */
const LOOK_MS = 1_000
/** The clock was moved when it went so much more or less than the time that has passed. */
const MOVED_MS = 1_000

/** How far the clock is ahead of the time that has passed since the process began: the same until somebody moves it. */
const toOffset = () => Date.now() - performance.now()

/**
 * Calls `tick` by a cron expression with seconds, in UTC, one at a time. A clock that is moved changes nothing but when
 * the next tick comes: node-cron waits for the clock to reach the time that it saw next, which after a step back is as
 * far away as the step was long, and a machine that slept would hear of each tick that it slept through. What node-cron
 * has to say goes into the log like everything else.
 */
export function startTicks(expression: string, tick: () => Promise<void>, log: Logger): Ticks {
  const tell = (level: 'info' | 'warn' | 'error' | 'debug') => (message: string | Error, error?: Error) =>
    log[level]({ ticks: expression, ...(error === undefined ? {} : { err: error }) }, toReason(message))
  const logger = { info: tell('info'), warn: tell('warn'), error: tell('error'), debug: tell('debug') }
  // Not left to node-cron, to which every task that is opened is the first.
  let underWay: Promise<void> | undefined
  const once = async () => {
    if (underWay !== undefined) return logger.warn('the tick before is still under way')
    underWay = tick()
    try {
      await underWay
    } finally {
      underWay = undefined
    }
  }
  let missed = 0
  const tellMissed = () => {
    logger.warn(`missed ${missed} ticks: the process was held up`)
    missed = 0
  }
  const open = (): ScheduledTask => {
    const task = schedule(expression, once, { timezone: 'UTC', logger, suppressMissedWarning: true })
    task.on('execution:missed', () => {
      // One line for all that were missed at once.
      if (missed === 0) setImmediate(tellMissed)
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
      'the clock was moved: ticks go on by what it says now',
    )
  }, LOOK_MS)
  watching.unref()
  return {
    stop: async () => {
      clearInterval(watching)
      await task.destroy()
      // Its failure is logged where it was begun.
      await underWay?.catch(() => undefined)
    },
  }
}
