import type { IndexPointRow } from '../../../shared/datasets/index-points.ts'
import type { BasketIndex } from '../../../shared/registry/index-records.ts'
import type { Candidate } from '../../job/define.ts'

/** The value of the index over time. */
export interface IndexSource {
  /** The points of the slots in [from, to), Unix milliseconds, that differ from what is stored. */
  fetchPoints(
    index: BasketIndex,
    span: { readonly from: number; readonly to: number },
    signal: AbortSignal,
  ): Promise<Candidate<IndexPointRow>[]>
}
