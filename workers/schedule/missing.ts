import type { Buckets } from '../../shared/coverage/grid.ts'
import type { Entity } from '../job/define-job.ts'

/** Buckets of an entity that are wanted and not known. */
export interface Missing {
  readonly entity: Entity
  readonly runs: readonly Buckets[]
}
