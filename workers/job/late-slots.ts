import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { Job } from './define-job.ts'

/**
 * Whether a slot is over, so that the present would be stored as its past. It is not collected any more: what it has left
 * out is missing in the coverage, and the scheduler has it collected from history where there is any.
 */
export const isLate = (job: Pick<Job, 'cadence'>, slot: number, now: number): boolean =>
  now >= slot + INTERVAL_SECONDS[job.cadence] * 1000
