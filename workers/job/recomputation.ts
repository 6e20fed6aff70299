import type { DatasetFacts } from '../../shared/datasets/list.ts'

/** Enqueues the days to compute again, for the jobs that are computed from a dataset. */
export interface Recomputation {
  /** Called after rows of a dataset are stored, before the job that stored them completes. */
  enqueue(dataset: DatasetFacts, rows: readonly object[]): Promise<void>
  close(): Promise<void>
}
