import type { DatasetFacts } from '../../shared/datasets/list.ts'

/** Enqueues, for the jobs that are computed from a dataset, the days that have to be computed again. */
export interface Recomputation {
  /** Called when rows of a dataset are stored, before the job that stored them is complete. */
  enqueue(dataset: DatasetFacts, rows: readonly object[]): Promise<void>
  close(): Promise<void>
}
