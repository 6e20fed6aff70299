import { toReason } from '../../shared/errors.ts'
import { CADENCES, type Cadence } from '../../shared/intervals.ts'
import { openLedger } from '../../shared/ledger/ledger.ts'
import { createOutageLog } from '../../shared/telemetry/outage-log.ts'
import { startTicks } from '../monitoring/ticks.ts'
import { enqueueDue, type Scheduled, type SchedulerContext } from './due-slots.ts'
import { enqueueComputation, toRanges } from './recompute.ts'
import { enqueueMissing } from './scan-for-gaps.ts'

/** Cron expressions (with seconds) of the search for due slots, per cadence. A slot starts at most this late. */
const TICK: Readonly<Record<Cadence, string>> = { '5m': '*/5 * * * * *', '1h': '*/15 * * * * *', '1d': '0 * * * * *' }

/** Cron expression of the search for missing data. The search runs more often than the shortest cadence. */
const SCAN = '30 * * * * *'

/** Time for the job that stored the inputs to enqueue the computation itself. */
const COMPUTED_WITHIN_MS = 60_000

export interface Scheduler {
  /** Enqueues the due slots of every cadence now. */
  tick(): Promise<void>
  /** Enqueues due slots and all missing data now. */
  scan(): Promise<void>
  stop(): Promise<void>
}

/** Enqueues due slots immediately and then on every tick. A failed tick is logged and repeated by the next one. */
export function startScheduler(scheduled: readonly Scheduled[], context: SchedulerContext): Scheduler {
  const outage = createOutageLog(context.log, 'error')
  const each = async (ofCadence: readonly Scheduled[], what: string, work: (one: Scheduled) => Promise<unknown>) => {
    for (const one of ofCadence) {
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
      'due slots could not be enqueued',
      (one) => enqueueDue(one, context),
    )
  const scanForMissing = () => each(scheduled, 'search for missing data failed', (one) => enqueueMissed(one, context))
  const ticks = [
    ...CADENCES.map((cadence) => startTicks(TICK[cadence], () => tick(cadence), context.log)),
    startTicks(SCAN, scanForMissing, context.log),
  ]
  const tickAll = async () => void (await Promise.all(CADENCES.map(tick)))
  const scan = async () => {
    await tickAll()
    await scanForMissing()
  }
  const first = scan()
  return {
    tick: tickAll,
    scan,
    stop: async () => {
      await Promise.all(ticks.map((each) => each.stop()))
      await first
    },
  }
}

/**
 * Computed datasets are computed again if their inputs are newer; other datasets are collected where data is missing.
 */
async function enqueueMissed({ job, queues }: Scheduled, context: SchedulerContext): Promise<void> {
  if (job.computedFrom.length === 0) return void (await enqueueMissing(job, queues.history, context))
  const units = await openLedger(context.db, job.dataset).dueUnits(COMPUTED_WITHIN_MS)
  if (units.length === 0) return
  const times = units.map(({ from }) => from)
  await enqueueComputation(job, queues.history, toRanges(times, job.cadence, job.history?.chunkPoints ?? 1))
  context.log.info({ dataset: job.name, units: units.length }, 'enqueued recomputation: the inputs are newer')
}
