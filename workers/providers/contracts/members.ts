import type { MembersRow } from '../../../shared/datasets/members.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Candidate } from '../../job/define-job.ts'

/** Member counts of communities, from one provider. */
export interface MembersSource {
  /** Number of communities that may be requested concurrently. */
  readonly concurrency: number
  /**
   * Fetches the current counts. A text is the reason why the provider has no number for the community; a retry may not
   * help.
   */
  fetchMembers(dao: Dao, signal: AbortSignal): Promise<Members | string>
}

/** Unvalidated counts of a response; the row check validates them. */
export type Members = Pick<Candidate<MembersRow>, 'active_members' | 'total_members'>

const NO_COUNTS = 'no counts in the answer'

/** Returns the counts, or the reason if there are none: a row without a number has no information. */
export function toMembers(members: Members): Members | string {
  return members.active_members === null && members.total_members === null ? NO_COUNTS : members
}
