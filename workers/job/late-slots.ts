import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { Job } from './define-job.ts'

/**
 * Whether a slot is over, so that the present would be stored as its past. It is not collected any more: what it has left
 * out is missing in the coverage, and the scheduler has it collected from history where there is any.
 */
export const isLate = (job: Pick<Job, 'cadence'>, slot: number, now: number): boolean => now >= toSlotEnd(job, slot)

/** The first moment that is no part of a slot; both in Unix milliseconds. */
export const toSlotEnd = ({ cadence }: Pick<Job, 'cadence'>, slot: number): number =>
  slot + INTERVAL_SECONDS[cadence] * 1000

/**
 * Whether a slot's rows get the slot's time and hold the state at the moment of the answer. Such an answer is of the slot in
 * which it came. Rows with times of their own, events and computed rows say themselves what time they are of.
 */
export const isOfPresent = ({ dataset, computedFrom }: Pick<Job, 'dataset' | 'computedFrom'>): boolean =>
  !dataset.hasOwnTimes && !dataset.resumes && computedFrom.length === 0
