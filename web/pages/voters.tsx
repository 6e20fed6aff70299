import { useAnswer } from '../answers.ts'
import { toShort } from '../format.ts'
import { toQuestion } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import { RecordTable } from '../parts/record-table.tsx'
import { Shown } from '../parts/shown.tsx'
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
  const question = toQuestion('/data/daos/governance/voters', { id, limit: most })
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
