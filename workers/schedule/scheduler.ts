import { readDueUnits } from '../../shared/coverage/computations.ts'
import { toReason } from '../../shared/errors.ts'
import { CADENCES, type Cadence } from '../../shared/intervals.ts'
import { createOutageLog } from '../../shared/telemetry/outage-log.ts'
import { startTicks } from '../watch/ticks.ts'
import { enqueueDue, type Scheduled, type SchedulerContext } from './due-slots.ts'
import { enqueueMissing } from './look.ts'
import { enqueueComputation, toRanges } from './recompute.ts'

/** How often due slots are looked for, per cadence (cron expressions with seconds): a slot starts at most this late. */
const TICK: Readonly<Record<Cadence, string>> = { '5m': '*/5 * * * * *', '1h': '*/15 * * * * *', '1d': '0 * * * * *' }

/** How often it is looked for what is missing: what got lost is found within the shortest cadence. */
const LOOK = '30 * * * * *'

/** A computation is given this long to be made by those who enqueued it when they stored its inputs. */
const COMPUTED_WITHIN_MS = 60_000

export interface Scheduler {
  /** Looks for due slots of every cadence now. */
  tick(): Promise<void>
  /** Looks for due slots and for everything that is missing now. */
  look(): Promise<void>
  stop(): Promise<void>
}

/** Looks for due slots at once and then on every tick. A failing tick is logged and the next one repeats it. */
export function startScheduler(scheduled: readonly Scheduled[], context: SchedulerContext): Scheduler {
  const outage = createOutageLog(context.log, 'error')
  const each = async (some: readonly Scheduled[], what: string, work: (one: Scheduled) => Promise<unknown>) => {
    for (const one of some) {
      try {
        await context.sync?.()
        await work(one)
        outage.works(`${one.job.name}: ${what}`)
      } catch (error) {
        context.metrics?.failed(one.job.name)
        outage.failed(`${one.job.name}: ${what}`, { dataset: one.job.name, reason: toReason(error) }, what)
      }
    }
  }
  const tick = (cadence: Cadence) =>
    each(
      scheduled.filter(({ job }) => job.cadence === cadence),
      'slots could not be enqueued',
      (one) => enqueueDue(one, context),
    )
  const lookForMissing = () => each(scheduled, 'what is missing could not be found', (one) => enqueueLost(one, context))
  const ticks = [
    ...CADENCES.map((cadence) => startTicks(TICK[cadence], () => tick(cadence), context.log)),
    startTicks(LOOK, lookForMissing, context.log),
  ]
  const tickAll = async () => void (await Promise.all(CADENCES.map(tick)))
  const look = async () => {
    await tickAll()
    await lookForMissing()
  }
  const first = look()
  return {
    tick: tickAll,
    look,
    stop: async () => {
      await Promise.all(ticks.map((each) => each.stop()))
      await first
    },
  }
}

/** What is computed is computed again where its inputs are newer; anything else is collected where it is missing. */
async function enqueueLost({ job, queues }: Scheduled, context: SchedulerContext): Promise<void> {
  if (job.computedFrom.length === 0) return void (await enqueueMissing(job, queues.history, context))
  const units = await readDueUnits(context.db, job.dataset, COMPUTED_WITHIN_MS)
  if (units.length === 0) return
  const times = units.map(({ from }) => from)
  await enqueueComputation(job, queues.history, toRanges(times, job.cadence, job.history?.chunkPoints ?? 1))
  context.log.info({ dataset: job.name, units: units.length }, 'computed again: its inputs are newer')
}
