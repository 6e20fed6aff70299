import type { IndexPointRow } from '../../../shared/datasets/index-points.ts'
import type { TimeRange } from '../../../shared/intervals.ts'
import type { BasketIndex } from '../../../shared/registry/index-records.ts'
import type { Candidate } from '../../job/define-job.ts'

/** The value of the index over time. */
export interface IndexSource {
  /** Fetches the points of the slots in the range that differ from the stored ones. */
  fetchPoints(index: BasketIndex, range: TimeRange, signal: AbortSignal): Promise<Candidate<IndexPointRow>[]>
}
