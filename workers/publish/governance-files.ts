import {
  DELEGATION_VALUES,
  delegation,
  delegations,
  OF_READ_TOKENS,
  toVotingTokenParams,
} from '../../shared/datasets/delegations.ts'
import { governance } from '../../shared/datasets/governance.ts'
import {
  FROM_PROPOSALS,
  proposalOfSource,
  selectVotes,
  toProposalValues,
  VOTE_VALUES,
  voteOfSource,
} from '../../shared/datasets/governance-records.ts'
import { COUNTED, OF_SCOPE, SOURCES, toScope } from '../../shared/datasets/governance-scope.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { type Columns, documented, from, type Published, RANGE, toValues } from './define-published.ts'

const allGovernance = ({ daos }: Registry) => ({ ...toScope(daos, SOURCES) })
const proposals = { table: 'dao_proposals', time: 'created_at' }
const votes = { table: 'dao_cast_votes', time: 'created_at' }
const DELEGATIONS: Columns<typeof DELEGATION_VALUES> = [
  ['recorded_at', 'recordedAt'],
  ['delegation_id', '_id'],
  ['delegator', 'delegator'],
  ['from_delegate', 'from'],
  ['to_delegate', 'to'],
  ['transaction_hash', 'transactionHash'],
]
const PROPOSALS: Columns<ReturnType<typeof toProposalValues>> = [
  ['created_at', 'createdAt'],
  ['proposal_id', '_id'],
  ['title', 'title'],
  ['author', 'author'],
  ['choices', 'choices'],
  ['scores', 'scores'],
  ['scores_total', 'scoresTotal'],
  ['votes', 'votes'],
  ['quorum', 'quorum'],
  ['starts_at', 'startsAt'],
  ['ends_at', 'endsAt'],
  ['source', 'source'],
  ['outcome', 'outcome'],
]
const VOTES: Columns<typeof VOTE_VALUES> = [
  ['created_at', 'createdAt'],
  ['vote_id', '_id'],
  ['proposal_id', 'proposal'],
  ['voter', 'voter'],
]
const VOTES_AFTER_CHOICE: Columns<typeof VOTE_VALUES> = [
  ['voting_power', 'votingPower'],
  ['source', 'source'],
]

/** The datasets about governance. */
export const governanceFiles: readonly Published[] = [
  {
    name: 'proposals',
    description:
      'Proposals of each DAO on Snapshot and on its governors, by the year in which they were made. The same proposals as /data/daos/governance/proposals with source=all.',
    of: governance,
    about: 'dao',
    extent: () => proposals,
    isYearly: () => true,
    params: allGovernance,
    rows: () => `WITH ${COUNTED}
SELECT p.dao AS key, ${toValues(toProposalValues("now64(3, 'UTC')"), PROPOSALS)}
${FROM_PROPOSALS(RANGE('created_at'))}`,
    columns: from(proposalOfSource, PROPOSALS),
    order: ['proposal_id'],
  },
  {
    name: 'votes',
    description:
      'Votes in each DAO on Snapshot and on its governors. The same votes as /data/daos/governance/votes with source=all.',
    of: governance,
    about: 'dao',
    extent: () => votes,
    params: allGovernance,
    rows: () => `SELECT v.dao AS key, ${toValues(VOTE_VALUES, VOTES)}, nullIf(nullIf(v.choice, ''), 'null') AS choice,
  ${toValues(VOTE_VALUES, VOTES_AFTER_CHOICE)}
FROM (${selectVotes(`${OF_SCOPE} AND ${RANGE('created_at')}`)}) AS v`,
    columns: [
      ...from(voteOfSource, VOTES),
      { name: 'choice', description: `As JSON. ${documented(voteOfSource, 'choice')}` },
      ...from(voteOfSource, VOTES_AFTER_CHOICE),
    ],
    order: ['vote_id'],
  },
  {
    name: 'delegations',
    description:
      'Changes of the delegates of accounts, of the token that the governors of each DAO count. The same events as /data/daos/governance/delegations.',
    of: delegations,
    about: 'dao',
    extent: () => ({ table: 'delegation_events', time: 'at' }),
    params: toVotingTokenParams,
    rows: () => `SELECT dao AS key, ${toValues(DELEGATION_VALUES, DELEGATIONS)}
FROM delegation_events FINAL WHERE ${OF_READ_TOKENS} AND ${RANGE('at')}`,
    columns: from(delegation, DELEGATIONS),
    order: ['delegation_id'],
  },
]
