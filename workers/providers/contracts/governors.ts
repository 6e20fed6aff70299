import type { GovernorsRow } from '../../../shared/datasets/governors.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Candidate, Run } from '../../job/define-job.ts'

/** Request for the governors of DAOs. Callbacks about an entity cover all of its governors. */
export type GovernorRequest = Pick<
  Run<GovernorSource, Dao>,
  'entities' | 'slot' | 'state' | 'log' | 'signal' | 'refuse' | 'putOff' | 'noteRead' | 'noteMore'
>

/** Events of governors. */
export interface GovernorSource {
  /**
   * Fetches the events since the last run (from the state), or the next piece of them. The first run starts at the
   * beginning.
   */
  fetchNew(request: GovernorRequest): Promise<Candidate<GovernorsRow>[]>
}
