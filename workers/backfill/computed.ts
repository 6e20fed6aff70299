import { toUnitMs, toUnitTimes } from '../../shared/buckets.ts'
import { openLedger } from '../../shared/ledger/ledger.ts'
import type { Progress } from '../../shared/progress-bar.ts'
import { jobPayload } from '../../shared/queue/queues.ts'
import { enqueueComputation, toRanges } from '../schedule/recompute.ts'
import type { Ended } from './outcome.ts'
import { type Collecting, untilDone } from './until-done.ts'

/**
 * Computes a range of a computed dataset from the stored inputs and waits until it is done. A unit whose inputs change
 * during the wait is not awaited again.
 * @returns the units whose computation failed permanently.
 */
export async function collectComputed(collecting: Collecting, progress: Progress): Promise<readonly Ended[]> {
  const { request, queue, stores } = collecting
  const { job, range } = request
  const ledger = openLedger(stores.db, job.dataset)
  const startedAt = stores.now()
  const times = toUnitTimes(range, job.cadence)
  let open = new Set(times)
  let isNoted = false
  const failed = new Map<number, string>()
  await untilDone(collecting, async () => {
    if (!isNoted) await ledger.noteStored([range])
    const isFirst = !isNoted
    isNoted = true
    const due = new Set((await ledger.dueUnits(0)).map(({ from }) => from))
    // Another job may have computed the unit since it failed.
    for (const time of failed.keys()) if (!due.has(time)) failed.delete(time)
    open = new Set([...open].filter((time) => due.has(time) && !failed.has(time)))
    progress.set(Math.floor(((times.length - open.size) / Math.max(1, times.length)) * progress.total))
    if (open.size === 0) return true
    const waiting = await queue.getJobCountByTypes('waiting', 'prioritized', 'delayed', 'active')
    if (waiting > 0 && !isFirst) return false
    for (const dead of await queue.getFailed()) {
      const payload = jobPayload.safeParse(dead.data).data
      if (payload?.kind !== 'range' || (dead.finishedOn ?? 0) < startedAt) continue
      for (const time of open) if (payload.from <= time && time < payload.to) failed.set(time, dead.failedReason)
    }
    const remaining = [...open].filter((time) => !failed.has(time))
    await enqueueComputation(job, queue, toRanges(remaining, job.cadence, job.history?.chunkPoints ?? 1))
    return remaining.length === 0
  })
  for (const reason of new Set(failed.values())) collecting.say(`${request.title}: ${reason}`)
  return toEnded(failed, toUnitMs(job.cadence), collecting)
}

function toEnded(failed: ReadonlyMap<number, string>, unit: number, { request }: Collecting): Ended[] {
  const entities = request.entities.map(({ id }) => id)
  return [...failed].map(([from, reason]) => ({
    chunk: {
      id: `${request.job.name}.${from}`,
      payload: { kind: 'range', from, to: from + unit, interval: request.interval, entities },
    },
    reason,
  }))
}
