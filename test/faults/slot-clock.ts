import { type Cadence, INTERVAL_SECONDS, toBucketStart } from '../../shared/intervals.ts'
import { toSlotJobId } from '../../shared/queue/queues.ts'
import type { Job } from '../../workers/job/define-job.ts'

/**
 * Start of simulated time for the datasets of each cadence, in Unix milliseconds. Every dataset runs through consecutive slots
 * of its own cadence: while five-minute datasets cover hours, across a midnight, daily datasets cover weeks.
 */
const BEGINS: Readonly<Record<Cadence, number>> = {
  '5m': Date.parse('2024-05-06T22:00:00Z'),
  '1h': Date.parse('2024-05-02T00:00:00Z'),
  '1d': Date.parse('2024-01-10T00:00:00Z'),
}

/** How far into a slot the clocks are after a move: jobs run promptly. */
const INTO_SLOT_MS = 5_000

/** The clock of a job: market caps are computed from prices, and use their days. */
export function toClock({ name, cadence }: Pick<Job, 'name' | 'cadence'>): Cadence {
  return name === 'market-cap' ? '5m' : cadence
}

/** Start of the slot with a number, counted from 0, in Unix milliseconds. */
export function toSlotTime(clock: Cadence, slot: number): number {
  return BEGINS[clock] + slot * INTERVAL_SECONDS[clock] * 1000
}

/** Id of a job's slot job when its clock is in the slot with a number. */
export function toSlotId(job: Job, slot: number): string {
  return toSlotJobId(job.name, toBucketStart(toClockTime(toClock(job), slot), job.cadence))
}

/** Time of a clock in the slot with a number, in Unix milliseconds. */
export function toClockTime(clock: Cadence, slot: number): number {
  return toSlotTime(clock, slot) + INTO_SLOT_MS
}
