import { countOrNull, numberOrNull, timeValue, uint32 } from '../../shared/record-values.ts'

/** Members of the record of one person, and of the table of all of them. */
export const personMembers = {
  voted: uint32.describe('Proposals that it voted on; to abstain is a vote.'),
  participation: numberOrNull.describe('`voted` / (`voted` + `missed`) as a fraction; null if both are 0.'),
  eligible: countOrNull.describe(
    'Proposals on governors at whose start it had delegated power; null if the power at that time is unknown.',
  ),
  participationWhenEligible: numberOrNull.describe(
    'Share of the `eligible` proposals that it voted on, as a fraction; null if there are none or `eligible` is null.',
  ),
  participationByPower: numberOrNull.describe(
    'Power that it cast on governors, divided by the power that it had at the start of each of their proposals, as a fraction; null if that is unknown or 0.',
  ),
  powerCast: numberOrNull.describe(
    'Sum of the power of all its votes, in whole tokens; null if the source does not report the power of some.',
  ),
  firstVoteAt: timeValue.nullable().describe('Time of its first vote on these proposals; null without a vote.'),
  lastVoteAt: timeValue.nullable().describe('Time of its last vote on them; null without a vote.'),
  medianHoursBeforeEnd: numberOrNull.describe(
    'Median of the hours from its last vote on a proposal to the end of the proposal; null without a vote.',
  ),
  withMajorityShare: numberOrNull.describe(
    'Share of its votes that were for the choice with the most power, as a fraction; votes for several choices and abstentions do not count. Null if no vote counts.',
  ),
}
