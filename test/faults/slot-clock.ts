import { type Cadence, INTERVAL_SECONDS, toBucketStart } from '../../shared/intervals.ts'
import { toSlotJobId } from '../../shared/queue/queues.ts'
import type { Job } from '../../workers/job/define-job.ts'

/**
 * Where simulated time begins for the datasets of each cadence, in Unix milliseconds. Every dataset lives through its own
 * slots, one after the other: while those of five minutes see hours, over a midnight, those of a day see weeks.
 */
const BEGINS: Readonly<Record<Cadence, number>> = {
  '5m': Date.parse('2024-05-06T22:00:00Z'),
  '1h': Date.parse('2024-05-02T00:00:00Z'),
  '1d': Date.parse('2024-01-10T00:00:00Z'),
}

/** How far into a slot the clocks are when they have moved to it: jobs are collected promptly. */
const INTO_SLOT_MS = 5_000

/** The clock that a job goes by: market caps are computed from prices, and have to live in their days. */
export function toClock({ name, cadence }: Pick<Job, 'name' | 'cadence'>): Cadence {
  return name === 'market-cap' ? '5m' : cadence
}

/** The beginning of the slot of a number, counted from 0, in Unix milliseconds. */
export function toSlotTime(clock: Cadence, slot: number): number {
  return BEGINS[clock] + slot * INTERVAL_SECONDS[clock] * 1000
}

/** The id of a job's own slot when its clock is in the slot of a number. */
export function toSlotId(job: Job, slot: number): string {
  return toSlotJobId(job.name, toBucketStart(toClockTime(toClock(job), slot), job.cadence))
}

/** What a clock shows in the slot of a number, in Unix milliseconds. */
export function toClockTime(clock: Cadence, slot: number): number {
  return toSlotTime(clock, slot) + INTO_SLOT_MS
}
