import { HISTORY_START } from '../../shared/intervals.ts'
import { time } from '../parameters/kinds.ts'
import { Problem } from '../problem/problem.ts'

/** The parameter of lists that can be asked for as they were known at a moment (docs/contract.md, section 8). */
export const asOfParameter = {
  asOf: time(
    'The records as they were known at this moment: of each the last observation at or before it, unless that was stale by then; what was not stored then is null, and changes are computed from the stored series.',
    '2024-01-01T00:00:00Z',
    { earliest: HISTORY_START },
  ).optional(),
}

/** @throws Problem `invalid_parameter` for a moment to come, of which nothing can be known. */
export function checkPast(asOf: number | undefined, now: number): void {
  if (asOf === undefined || asOf <= now) return
  throw new Problem('invalid_parameter', 'asOf must not be in the future.', { param: 'asOf' })
}
