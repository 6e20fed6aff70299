import { z } from 'zod'
import { delegations } from '../../../../shared/datasets/delegations.ts'
import { governance } from '../../../../shared/datasets/governance.ts'
import { governors } from '../../../../shared/datasets/governors.ts'
import { countOrNull, numberOrNull, uint32 } from '../../../../shared/record-values.ts'
import { toObject } from '../../../formats/formats.ts'
import { toPersonsSql } from '../../../governance/participation.ts'
import { personMembers } from '../../../governance/person-members.ts'
import { type ProposalRange, rangeParameters, toProposalRange } from '../../../governance/range.ts'
import { LIST_HEADERS } from '../../../http/headers.ts'
import {
  answerSet,
  createColumnSet,
  EVERYTHING,
  type ListSource,
  loadSet,
  type RecordSet,
  toListHead,
} from '../../../lists/lists.ts'
import { optionalPage } from '../../../parameters/kinds.ts'
import { toQuestions } from '../../../parameters/questions.ts'
import { VALUES_PER_LIST } from '../../../route/cost.ts'
import { defineRoute } from '../../../route/define-route.ts'
import { daoKind } from '../../../route/entities.ts'

const person = z
  .strictObject({
    address: z.string().describe('The address, in lower case.'),
    votingPower: numberOrNull.describe(
      'Power that is delegated to it at the end of the range, in whole tokens; null if delegations are not collected.',
    ),
    rank: countOrNull.describe('Place of that power among all delegates, from 1 on; null without power.'),
    proposals: uint32.describe('Proposals whose vote ended in the range.'),
    ...personMembers,
    missed: uint32.describe('Proposals that it did not vote on.'),
    unknown: uint32.describe('Proposals whose votes are not completely known. They are in no other number.'),
    onchainVoted: uint32.describe('Proposals on governors that it voted on.'),
    offchainVoted: uint32.describe('Proposals on Snapshot that it voted on.'),
  })
  .meta({ id: 'GovernanceParticipation', description: 'How one address took part in the proposals of a DAO.' })

const toTime = (column: string) => `toDateTime64(${column}, 3, 'UTC')`

const RECORD = toObject(person, {
  address: 'person',
  ...{ votingPower: 'power', rank: 'rank', proposals: 'proposals', voted: 'voted' },
  participation: 'if(known = 0, NULL, voted / known)',
  ...{ eligible: 'eligible', participationWhenEligible: 'eligible_participation' },
  participationByPower: 'power_participation',
  ...{ powerCast: 'power_cast', firstVoteAt: toTime('first_vote_at'), lastVoteAt: toTime('last_vote_at') },
  ...{ medianHoursBeforeEnd: 'hours', withMajorityShare: 'majority_share' },
  ...{ missed: 'known - voted', unknown: 'proposals - known' },
  ...{ onchainVoted: 'onchain_voted', offchainVoted: 'voted - onchain_voted' },
})

/** The default order is by power, which the list engine calls `market_cap`. */
const toSql = (isPast: boolean) => `
SELECT bitShiftRight(sipHash64(person), 11) AS key, '' AS name, power AS market_cap,
  fromUnixTimestamp64Milli({read_at: Int64}, 'UTC') AS as_of, ${RECORD} AS record
FROM (${toPersonsSql(isPast)})
WHERE {all: Bool} OR has({keys: Array(UInt64)}, key)`

const SQL = { now: toSql(false), past: toSql(true) }
const DATASETS = [governance, governors, delegations]

const toSource = (
  id: string,
  source: string,
  { from, to, isPast, readAt, params, digest }: ProposalRange,
): ListSource => ({
  name: 'governance-records',
  key: `governance-records ${id} ${source} ${from} ${to} ${digest}`,
  datasets: DATASETS,
  sql: isPast ? SQL.past : SQL.now,
  params: { ...params, read_at: readAt },
})

const questions = toQuestions(person)

export const governanceRecordsRoute = defineRoute({
  operation: 'listDaoVotingRecords',
  path: '/data/daos/governance/records',
  tag: 'DAOs',
  summary: 'Participation of all delegates and voters of one DAO',
  description:
    'Every address that had delegated power at the end of the range, or that voted on a proposal whose vote ended in it, those with the most power first, with its participation as in `/data/daos/governance/record`. The list is complete unless `limit` is given. `filter=votingPower>0` leaves the delegates.',
  one: daoKind,
  query: { ...rangeParameters, ...questions.parameters, ...optionalPage('addresses', { max: 100_000 }) },
  record: person,
  estimateValues: () => VALUES_PER_LIST,
  datasets: DATASETS,
  headers: LIST_HEADERS,
  mayHaveNoData: true,
  handle: async (call) => {
    const { query, found, representation } = call
    const range = await toProposalRange(call)
    const source = toSource(found.id, query.source ?? 'all', range)
    const set = loadSet<RecordSet>(call, source, (rows) => createColumnSet(person, rows))
    const answer = await answerSet(
      call,
      { ...source, set },
      {
        selection: EVERYTHING,
        sort: questions.toSort(query.sort),
        filters: questions.toFilters(query.filter),
        ...(query.limit === undefined ? {} : { limit: query.limit }),
      },
    )
    const end = range.expiresAt === undefined ? {} : { expiresAt: range.expiresAt }
    return { ...answer, ...toListHead(answer, representation), asOf: range.readAt, ...end }
  },
})
