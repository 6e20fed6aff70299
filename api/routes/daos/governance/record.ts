import { z } from 'zod'
import { delegations } from '../../../../shared/datasets/delegations.ts'
import { governance } from '../../../../shared/datasets/governance.ts'
import { SOURCES } from '../../../../shared/datasets/governance-scope.ts'
import { governors } from '../../../../shared/datasets/governors.ts'
import { countOrNull, idValue, numberOrNull, timeValue, uint32 } from '../../../../shared/record-values.ts'
import type { Answer } from '../../../formats/formats.ts'
import { isKnownOnchain, type ListedProposal, UNKNOWN_REASONS } from '../../../governance/participation.ts'
import { type Participation, readPerson, toShare } from '../../../governance/person.ts'
import { personMembers } from '../../../governance/person-members.ts'
import { findOwnPower } from '../../../governance/powers.ts'
import { type ProposalRange, rangeParameters, toProposalRange } from '../../../governance/range.ts'
import { answerComputed, EVERYTHING } from '../../../lists/lists.ts'
import { manyAccounts } from '../../../parameters/kinds.ts'
import { VALUES_PER_LIST } from '../../../route/cost.ts'
import { defineRoute } from '../../../route/define-route.ts'
import { daoKind } from '../../../route/entities.ts'

/** Most addresses of one person. */
const MOST_ADDRESSES = 20

const about = {
  _id: idValue.describe('Id of the proposal.'),
  title: z.string().describe('Its title, empty where it was not collected.'),
  source: z.enum(SOURCES).describe('Where votes on it were cast.'),
  endsAt: timeValue.describe('When the vote ended.'),
  url: z.url().nullable().describe('URL of its web page; null if the source does not report it.'),
}

const ballot = {
  choice: z
    .string()
    .nullable()
    .describe(
      'The choice in the words of the proposal; null if the addresses voted differently, and while it is secret.',
    ),
  votingPower: numberOrNull.describe('Power of the votes of all addresses; null if the source does not report it.'),
  votedAt: timeValue.describe('When the person last voted.'),
  withMajority: z
    .boolean()
    .nullable()
    .describe(
      'Whether the choice is the one with the most power, apart from abstentions; null for abstentions, for votes for several choices, and if two choices have as much.',
    ),
}

const reason = z
  .enum(UNKNOWN_REASONS)
  .describe(
    'Why its votes are not completely known: `unsettled` while Snapshot has not counted them or revealed secret choices, `unread` until its source was read after the end.',
  )

const row = z
  .strictObject({
    ...about,
    participation: z
      .enum(['voted', 'missed', 'unknown'])
      .describe('`unknown` if the votes on the proposal are not completely known.'),
    reason: reason.nullable(),
    ...ballot,
    votedAt: ballot.votedAt.nullable().describe('When the person last voted; null without a vote.'),
  })
  .meta({ id: 'GovernanceBallot', description: 'A proposal, and how a person voted on it.' })

const ofSource = z.strictObject({
  proposals: uint32.describe('Proposals whose votes are known.'),
  voted: uint32.describe('Proposals that the person voted on.'),
  participation: numberOrNull.describe('`voted` / `proposals` as a fraction, null if there are none.'),
})

const record = z
  .strictObject({
    dao: idValue.describe('Id of the DAO.'),
    addresses: z.array(z.string()).describe('The addresses of the person, in lower case and in order.'),
    from: timeValue.describe('Start of the range.'),
    to: timeValue.describe('End of the range, exclusive.'),
    proposals: uint32.describe('Proposals whose vote ended in the range: `voted`, `missed` and `unknown` together.'),
    ...personMembers,
    missed: uint32.describe('Proposals that none of the addresses voted on; `missedProposals` lists them.'),
    missedCount: uint32.describe('The same number as `missed`.'),
    unknown: uint32.describe('Proposals whose votes are not completely known. They are in no other number.'),
    onchain: ofSource.describe('Of the proposals on governors.'),
    offchain: ofSource.describe('Of the proposals on Snapshot.'),
    withMajority: uint32.describe('Votes for the choice with the most power.'),
    votingPower: numberOrNull.describe(
      'Power that is delegated to the addresses at the end of the range, in whole tokens; null if delegations are not collected.',
    ),
    rank: countOrNull.describe('Place of that power among all delegates, from 1 on; null without power.'),
    votes: z.array(z.strictObject({ ...about, ...ballot })).describe('The votes, in the order of the ends.'),
    missedProposals: z.array(z.strictObject(about)).describe('The proposals without a vote of the person.'),
    unknownProposals: z.array(z.strictObject({ ...about, reason })).describe('Proposals whose votes are not known.'),
    incomplete: z
      .array(
        z.strictObject({
          source: z.enum(SOURCES).describe('The source.'),
          reason: z.string().describe('What may be missing, in words.'),
        }),
      )
      .describe('Sources that may have further proposals in the range; empty if all were read.'),
  })
  .meta({ id: 'GovernanceRecord', description: 'How one person took part in the proposals of a DAO.' })

type GovernanceRecord = z.infer<typeof record>
type Row = z.infer<typeof row>

const toTime = (ms: number) => new Date(ms).toISOString()
const toTimeOrNull = (ms: number | null) => (ms === null ? null : toTime(ms))

function toRows({ ballots }: Participation, proposals: readonly ListedProposal[]): Row[] {
  return proposals.flatMap(({ id, ends, reason: unknown, title, source, url }): Row[] => {
    if (ends === null) return []
    const vote = unknown === '' ? ballots.get(id) : undefined
    return [
      {
        ...{ _id: id, title, source, endsAt: toTime(ends), url },
        participation: unknown !== '' ? 'unknown' : vote === undefined ? 'missed' : 'voted',
        reason: unknown === '' ? null : unknown,
        ...{ choice: vote?.choice ?? null, votingPower: vote?.power ?? null, votedAt: toTimeOrNull(vote?.at ?? null) },
        withMajority: vote?.agrees ?? null,
      },
    ]
  })
}

function toRecord(
  found: Participation,
  rows: readonly Row[],
  { dao, addresses, range, rank }: { dao: string; addresses: string[]; range: ProposalRange; rank: number | null },
): GovernanceRecord {
  const { voted, onchainVoted } = found
  const known = rows.filter(({ reason }) => reason === null)
  const onchain = range.proposals.filter(isKnownOnchain).length
  const offchain = { proposals: known.length - onchain, voted: voted - onchainVoted }
  const toAbout = ({ _id, title, source, endsAt, url }: Row) => ({ _id, title, source, endsAt, url })
  return {
    ...{ dao, addresses, from: toTime(range.from), to: toTime(range.to) },
    ...{ proposals: rows.length, voted, participation: toShare(voted, known.length), eligible: found.eligible },
    ...{ participationWhenEligible: found.eligibleParticipation, participationByPower: found.powerParticipation },
    ...{ powerCast: found.powerCast, firstVoteAt: toTimeOrNull(found.firstVoteAt) },
    lastVoteAt: toTimeOrNull(found.lastVoteAt),
    ...{ medianHoursBeforeEnd: found.medianHours, withMajorityShare: found.majorityShare },
    ...{ missed: known.length - voted, missedCount: known.length - voted, unknown: rows.length - known.length },
    onchain: { proposals: onchain, voted: onchainVoted, participation: toShare(onchainVoted, onchain) },
    offchain: { ...offchain, participation: toShare(offchain.voted, offchain.proposals) },
    ...{ withMajority: found.agreed, votingPower: found.power, rank },
    votes: rows.flatMap(({ participation: _, reason: __, votedAt, choice, votingPower, withMajority, ...one }) =>
      votedAt === null ? [] : [{ ...one, choice, votingPower, votedAt, withMajority }],
    ),
    missedProposals: rows.filter(({ participation }) => participation === 'missed').map(toAbout),
    unknownProposals: rows.flatMap((one) => (one.reason === null ? [] : [{ ...toAbout(one), reason: one.reason }])),
    incomplete: [...range.incomplete],
  }
}

export const governanceRecordRoute = defineRoute({
  operation: 'getDaoVotingRecord',
  path: '/data/daos/governance/record',
  tag: 'DAOs',
  summary: 'Votes of one person on all proposals of a time',
  description:
    'How one person took part in the proposals of one DAO whose vote ended in the range: votes, missed proposals, participation, power. Several addresses count as one person: their powers add up, and one vote of any of them suffices. Proposals that were canceled or flagged as spam do not count; a question that was voted on on Snapshot and on a governor counts twice. A proposal whose votes are not completely known is neither voted nor missed. With another format than JSON, one row for each proposal.',
  one: daoKind,
  query: { address: manyAccounts('one person', MOST_ADDRESSES).min(1, 'must not be empty'), ...rangeParameters },
  record: row,
  response: record,
  estimateValues: () => VALUES_PER_LIST,
  datasets: [governance, governors, delegations],
  mayHaveNoData: true,
  handle: async (call): Promise<Answer> => {
    const { db, found: dao, query, representation } = call
    const range = await toProposalRange(call)
    const addresses = [...new Set(query.address)].sort()
    const own = await findOwnPower(call, range, addresses)
    const found = await readPerson(db, range, addresses, own)
    const rows = toRows(found, range.proposals)
    const head = {
      asOf: range.readAt,
      ...(range.expiresAt === undefined ? {} : { expiresAt: range.expiresAt }),
    }
    if (representation.format !== 'json')
      return answerComputed(
        call,
        { name: 'governance-record', records: rows, ...head },
        { selection: EVERYTHING, sort: [], filters: [] },
      )
    return {
      body: Buffer.from(JSON.stringify(toRecord(found, rows, { dao: dao.id, addresses, range, rank: own.rank }))),
      ...head,
    }
  },
})
