import type { Buckets } from '../../shared/coverage/grid.ts'
import type { Entity } from '../job/define-job.ts'

/** Wanted buckets of an entity that are not covered. */
export interface Missing {
  readonly entity: Entity
  readonly runs: readonly Buckets[]
}
