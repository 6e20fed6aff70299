import type { MembersRow } from '../../../shared/datasets/members.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Candidate } from '../../job/define-job.ts'

/** The members of communities, as one provider counts them. */
export interface MembersSource {
  /** How many communities may be asked for at the same time. */
  readonly concurrency: number
  /**
   * The members now. A text is the reason why the provider has no number for this community; asking again may not help.
   */
  fetchMembers(dao: Dao, signal: AbortSignal): Promise<Members | string>
}

/** What an answer counts, as sent: the row check judges it. */
export type Members = Pick<Candidate<MembersRow>, 'active_members' | 'total_members'>

const NO_COUNTS = 'no counts in the answer'

/** The counts, or that there are none: a row without a number would say nothing. */
export function toMembers(members: Members): Members | string {
  return members.active_members === null && members.total_members === null ? NO_COUNTS : members
}
