import type { DelegatingDao, DelegationsRow } from '../../../shared/datasets/delegations.ts'
import type { GovernorsRow } from '../../../shared/datasets/governors.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Candidate, Run } from '../../job/define-job.ts'

/** Request for contracts of DAOs. Callbacks about an entity cover all of its contracts. */
export type FollowRequest<D extends Dao> = Pick<
  Run<unknown, D>,
  'entities' | 'slot' | 'state' | 'log' | 'signal' | 'refuse' | 'putOff' | 'noteRead' | 'noteMore'
>

export type GovernorRequest = FollowRequest<Dao>

/** Delegations of voting tokens. */
export interface DelegationSource {
  /** Fetches the events since the last run, like `GovernorSource`. */
  fetchNew(request: FollowRequest<DelegatingDao>): Promise<Candidate<DelegationsRow>[]>
}

/** Events of governors. */
export interface GovernorSource {
  /**
   * Fetches the events since the last run (from the state), at most the number that one run may read. The first run
   * starts at the beginning.
   */
  fetchNew(request: GovernorRequest): Promise<Candidate<GovernorsRow>[]>
}
