import { useAnswer } from '../answers.ts'
import { toShort } from '../format.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import { toConcentration } from '../parts/drawing.ts'
import { RecordTable } from '../parts/record-table.tsx'
import { SeriesChart } from '../parts/series-chart.tsx'
import { isNone, Shown } from '../parts/shown.tsx'
import { DayValue, Value } from '../parts/value.tsx'

const MOST_VOTERS = 10

/** An account of an EVM chain or of Starknet, as in the paths of pages of voters. */
const ADDRESS = /^0x[0-9a-f]{40,64}$/i

/** An address, with a link to the page of its votes in all DAOs. */
export function Voter({ address }: { address: string }) {
  const shown = <code title={address}>{toShort(address)}</code>
  return ADDRESS.test(address) ? <a href={`voters/${address}`}>{shown}</a> : shown
}

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
              { title: 'Latest vote', cell: ({ lastVoteAt }) => <DayValue at={lastVoteAt} /> },
            ]}
          />
        )}
      </Shown>
    </Card>
  )
}

/** The delegates with the most power in a DAO; nothing where delegations are not collected. */
export function Delegates({ id }: { id: string }) {
  const question = toQuestion('/data/daos/governance/delegates', { id, limit: MOST_VOTERS })
  const delegates = useAnswer(question)
  if (isNone(delegates)) return null
  return (
    <Card title="Top delegates" question={question} facts={delegates.received?.facts}>
      <Shown of={delegates} what="delegates" rows={MOST_VOTERS}>
        {(data) => (
          <RecordTable
            caption="Top delegates"
            records={data}
            keyOf={({ delegate }) => delegate}
            columns={[
              { title: 'Delegate', cell: ({ delegate }) => <Voter address={delegate} /> },
              { title: 'Power', isNumber: true, cell: ({ votingPower }) => <Value of={votingPower} as="amount" /> },
              { title: 'Share', isNumber: true, cell: ({ share }) => <Value of={share} as="share" /> },
              { title: 'Delegators', isNumber: true, cell: ({ delegators }) => <Value of={delegators} as="count" /> },
              { title: 'Voted', isNumber: true, cell: ({ votesCast }) => <Value of={votesCast} as="count" /> },
              {
                title: 'Missed',
                isNumber: true,
                cell: ({ proposalsMissed }) => <Value of={proposalsMissed} as="count" />,
              },
            ]}
          />
        )}
      </Shown>
      <p class="note">
        Voted and missed are proposals on the DAO’s governors, from the first day with power on. Votes on Snapshot are
        on the page of the delegate.
      </p>
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
