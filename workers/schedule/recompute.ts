import type { Redis } from 'ioredis'
import { toUnitMs } from '../../shared/buckets.ts'
import { isOn } from '../../shared/config/datasets-off.ts'
import { type Cadence, INTERVAL_SECONDS, type TimeRange, toMs } from '../../shared/intervals.ts'
import { openLedger } from '../../shared/ledger/ledger.ts'
import { createQueue, type DatasetQueue, toSlotName } from '../../shared/queue/queues.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Job, Recomputation } from '../job/define-job.ts'

/** A backfill stores many batches of the same days. A computation waits 2 seconds for more of them. */
const SETTLE_MS = 2_000

/**
 * Opens the history queues of the computed jobs. A waiting computation reads all rows stored before it starts, so the
 * same days are not enqueued twice. A running computation may have read before these rows were stored, so exactly one
 * more is enqueued to follow it. If a dataset is off, its ranges are only recorded as due.
 */
export function createRecomputation(
  jobs: readonly Job[],
  redis: Redis,
  prefix: string,
  db: Database,
  off: readonly string[] = [],
): Recomputation {
  const computations = jobs
    .filter(({ computedFrom }) => computedFrom.length > 0)
    .map((job) => ({ job, queue: createQueue(job.name, redis, prefix, 'history'), isCollected: isOn(job, off) }))
  return {
    enqueue: async (dataset, rows) => {
      const computed = computations.filter(({ job }) => job.computedFrom.some(({ name }) => name === dataset.name))
      if (computed.length === 0) return
      const times = rows.map((row) => toMs(String(Reflect.get(row, dataset.series.time))))
      for (const { job, queue, isCollected } of computed) {
        const ranges = toRanges(times, job.cadence, job.history?.chunkPoints ?? 1)
        await openLedger(db, job.dataset).noteStored(ranges)
        if (isCollected) await enqueueComputation(job, queue, ranges)
      }
    },
    close: async () => {
      await Promise.all(computations.map(({ queue }) => queue.close()))
    },
  }
}

/** Enqueues the computation of ranges from `toRanges`; a waiting computation is not duplicated. */
export async function enqueueComputation(job: Job, queue: DatasetQueue, ranges: readonly TimeRange[]): Promise<void> {
  await queue.addBulk(
    ranges.map(({ from, to }) => ({
      name: job.name,
      data: { kind: 'range', from, to, interval: job.cadence },
      opts: {
        delay: SETTLE_MS,
        deduplication: { id: `${toSlotName(from)}.${toSlotName(to)}`, keepLastIfActive: true },
      },
    })),
  )
}

/**
 * Returns ranges of whole computation units that contain the times (Unix milliseconds). There is at most one range per
 * `points` cadences on a fixed grid. A single distant time, such as that of a token without trades, therefore does not
 * create a long range.
 */
export function toRanges(times: readonly number[], cadence: Cadence, points: number): TimeRange[] {
  const unit = toUnitMs(cadence)
  const width = Math.max(unit, Math.floor((INTERVAL_SECONDS[cadence] * 1000 * points) / unit) * unit)
  const ranges = new Map<number, TimeRange>()
  for (const time of times) {
    const start = Math.floor(time / unit) * unit
    const cell = Math.floor(start / width)
    const { from, to } = ranges.get(cell) ?? { from: start, to: start + unit }
    ranges.set(cell, { from: Math.min(from, start), to: Math.max(to, start + unit) })
  }
  return [...ranges.values()].sort((a, b) => a.from - b.from)
}
