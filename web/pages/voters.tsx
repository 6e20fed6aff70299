import { useAnswer } from '../answers.ts'
import { toShort } from '../format.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import { toConcentration } from '../parts/drawing.ts'
import { RecordTable } from '../parts/record-table.tsx'
import { SeriesChart } from '../parts/series-chart.tsx'
import { isNone, Shown } from '../parts/shown.tsx'
import { useTitle } from '../parts/title.ts'
import { TimeValue, Value } from '../parts/value.tsx'

const MOST_VOTERS = 10

/** An address, with a link to the page of its votes in all DAOs. */
export const Voter = ({ address }: { address: string }) => (
  <a href={`voters/${address}`}>
    <code title={address}>{toShort(address)}</code>
  </a>
)

/** The voters with the most votes in a DAO. */
export function Voters({ id, most = MOST_VOTERS }: { id: string; most?: number }) {
  const question = toQuestion('/data/daos/governance/voters', { id, source: 'all', limit: most })
  const voters = useAnswer(question)
  return (
    <Card title="Top voters" question={question} facts={voters.received?.facts}>
      <Shown of={voters} what="voters" isEmpty={(data) => data.length === 0} empty="No votes yet.">
        {(data) => (
          <RecordTable
            caption="Top voters"
            records={data}
            keyOf={({ voter }) => voter}
            columns={[
              { title: 'Voter', cell: ({ voter }) => <Voter address={voter} /> },
              { title: 'Votes', isNumber: true, cell: ({ votes }) => <Value of={votes} as="count" /> },
              {
                title: 'Latest voting power',
                isNumber: true,
                cell: ({ lastVotingPower }) => <Value of={lastVotingPower} as="amount" />,
              },
              { title: 'Latest vote', cell: ({ lastVoteAt }) => <TimeValue at={lastVoteAt} /> },
            ]}
          />
        )}
      </Shown>
    </Card>
  )
}

/** The API's limit of delegates. */
const MOST_RANKS = 1000

const toDelegateCurve = (delegates: Answer<'/data/daos/governance/delegates'>) =>
  toConcentration(
    delegates.map(({ share }) => share),
    { name: 'share of the delegated power', as: 'share' },
  )

const toVoterCurve = (voters: Answer<'/data/daos/governance/voters'>) =>
  toConcentration(
    voters.map(({ lastVotingPower }) => lastVotingPower),
    { name: 'voting power', as: 'amount' },
  )

/**
 * How much voting power the largest delegates have together; in a DAO without collected delegations, the largest voters by
 * the power of their latest votes.
 */
export function VotingPower({ id }: { id: string }) {
  const ofDelegates = toQuestion('/data/daos/governance/delegates', { id, limit: MOST_RANKS, fields: ['share'] })
  const delegates = useAnswer(ofDelegates)
  const query = { id, sort: '-lastVotingPower', limit: MOST_RANKS, fields: ['lastVotingPower' as const] }
  const ofVoters = toQuestion('/data/daos/governance/voters', query)
  const voters = useAnswer(isNone(delegates) ? ofVoters : undefined)
  if (!isNone(delegates))
    return (
      <SeriesChart
        title="Voting power of the largest delegates"
        name="Share of the delegated power that the largest delegates have together"
        question={ofDelegates}
        series={delegates}
        toDrawing={toDelegateCurve}
        isLow
      />
    )
  if (isNone(voters)) return null
  return (
    <SeriesChart
      title="Voting power of the largest voters"
      name="Power of the latest votes that the largest voters have together"
      question={ofVoters}
      series={voters}
      toDrawing={toVoterCurve}
      isLow
    >
      <p class="note">The power of the latest vote of each voter. Delegations of this DAO are not collected.</p>
    </SeriesChart>
  )
}

const NOT_READ = 'Delegations of this DAO are not collected, or were not read to their end yet.'

/** The page of an address: its votes and delegated power in every DAO. */
export function VoterPage({ address }: { address: string }) {
  const question = toQuestion('/data/voters', { address: address.toLowerCase() })
  const daos = useAnswer(question)
  useTitle([{ name: `Voter ${toShort(address)}` }])
  return (
    <div class="column">
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href="governance">Governance</a> / Voters
      </nav>
      <div class="about">
        <h1>Voter {toShort(address)}</h1>
        <p>
          <code class="curl">{address}</code>
        </p>
      </div>
      <Card title="DAOs" question={question} facts={daos.received?.facts}>
        <Shown
          of={daos}
          what="votes"
          isEmpty={(data) => data.length === 0}
          empty="This address has not voted in a known DAO, and has no delegated power."
        >
          {(data) => (
            <RecordTable
              caption="DAOs"
              records={data}
              keyOf={({ dao }) => dao}
              columns={[
                { title: 'DAO', cell: ({ dao, name }) => <a href={`daos/${dao}?tab=governance`}>{name}</a> },
                { title: 'Votes', isNumber: true, cell: ({ votes }) => <Value of={votes} as="count" /> },
                { title: 'Power', isNumber: true, cell: ({ votingPower }) => <Value of={votingPower} as="amount" /> },
                {
                  title: 'Delegators',
                  isNumber: true,
                  cell: ({ delegators }) => <Value of={delegators} as="count" why={NOT_READ} />,
                },
                { title: 'First vote', cell: ({ firstVoteAt }) => <VoteTime at={firstVoteAt} /> },
                { title: 'Latest vote', cell: ({ lastVoteAt }) => <VoteTime at={lastVoteAt} /> },
              ]}
            />
          )}
        </Shown>
        <p class="note">
          Votes are proposals that the address voted on, on Snapshot and on governors. Power is what is delegated to it
          now; in DAOs without collected delegations, the power of its latest vote.
        </p>
      </Card>
    </div>
  )
}

const VoteTime = ({ at }: { at: string | null }) =>
  at === null ? <span title="It has only delegated power here.">no vote</span> : <TimeValue at={at} />
