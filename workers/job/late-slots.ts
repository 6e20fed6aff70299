import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { Job } from './define-job.ts'

/**
 * Returns whether a slot is over. It is no longer collected, because the present would be stored as its past. Its
 * values are missing in the coverage, and the scheduler collects them from history if the job has history.
 */
export const isLate = (job: Pick<Job, 'cadence'>, slot: number, now: number): boolean => now >= toSlotEnd(job, slot)

/** Returns the end of a slot (exclusive). Both are Unix milliseconds. */
export const toSlotEnd = ({ cadence }: Pick<Job, 'cadence'>, slot: number): number =>
  slot + INTERVAL_SECONDS[cadence] * 1000

/**
 * Returns whether a slot's rows get the slot's time and hold the state at the time of the response. Such a response
 * belongs to the slot in which it arrived. Events, computed rows and rows with their own times carry the time that they
 * describe.
 */
export const isOfPresent = ({ dataset, computedFrom }: Pick<Job, 'dataset' | 'computedFrom'>): boolean =>
  !dataset.hasOwnTimes && !dataset.resumes && computedFrom.length === 0
