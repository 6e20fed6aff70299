import type { GovernorsRow } from '../../../shared/datasets/governors.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Candidate, Run } from '../../job/define-job.ts'

/** Whose governors a source is asked for; what is said there of an entity is said of all of its governors. */
export type GovernorRequest = Pick<
  Run<GovernorSource, Dao>,
  'entities' | 'slot' | 'state' | 'log' | 'signal' | 'refuse' | 'putOff' | 'noteRead' | 'noteMore'
>

/** Events of governors. */
export interface GovernorSource {
  /** What happened since the last run, which the state remembers, or the next piece of it; of a first run, from the beginning. */
  fetchNew(request: GovernorRequest): Promise<Candidate<GovernorsRow>[]>
}
