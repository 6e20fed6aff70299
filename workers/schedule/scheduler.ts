import { toReason } from '../../shared/errors.ts'
import { CADENCES, type Cadence } from '../../shared/intervals.ts'
import { startTicks } from '../watch/ticks.ts'
import { enqueueDue, type Scheduled, type SchedulerContext } from './due-slots.ts'

/** How often due slots are looked for, per cadence (cron expressions with seconds): a slot starts at most this late. */
const TICK: Readonly<Record<Cadence, string>> = { '5m': '*/5 * * * * *', '1h': '*/15 * * * * *', '1d': '0 * * * * *' }

export interface Scheduler {
  /** Looks for due slots of every cadence now. */
  look(): Promise<void>
  stop(): Promise<void>
}

/** Looks for due slots at once and then on every tick. A failing tick is logged and the next one repeats it. */
export function startScheduler(scheduled: readonly Scheduled[], context: SchedulerContext): Scheduler {
  const tick = async (cadence: Cadence) => {
    for (const one of scheduled.filter(({ job }) => job.cadence === cadence)) {
      try {
        await enqueueDue(one, context)
      } catch (error) {
        context.metrics?.failed(one.job.name)
        context.log.error({ dataset: one.job.name, reason: toReason(error) }, 'slots could not be enqueued')
      }
    }
  }
  const ticks = CADENCES.map((cadence) => startTicks(TICK[cadence], () => tick(cadence), context.log))
  const look = async () => void (await Promise.all(CADENCES.map(tick)))
  const first = look()
  return {
    look,
    stop: async () => {
      await Promise.all(ticks.map((each) => each.stop()))
      await first
    },
  }
}
