import { useAnswer } from '../answers.ts'
import { toShort } from '../format.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { type Column, RecordTable } from '../parts/record-table.tsx'
import { Shown } from '../parts/shown.tsx'
import { Moment, Unknown, Value } from '../parts/value.tsx'

const NO_SPACE = 'Not known: no space of this DAO is followed.'
const MOST = 10

function Summary({ id, space }: { id: string; space: string | null }) {
  const question = toQuestion('/data/daos/governance/summary', { id: [id] })
  const governance = useAnswer(question)
  return (
    <Card title="Governance" question={question} facts={governance.given?.facts}>
      <Shown of={governance} what="votes" isEmpty={(data) => data.length === 0} empty={NO_SPACE}>
        {([record]) =>
          record !== undefined && (
            <Stats>
              <Stat name="Proposals">
                <Value of={record.proposals} as="count" />
              </Stat>
              <Stat name="Open now">
                <Value of={record.activeProposals} as="count" />
              </Stat>
              <Stat name="Votes">
                <Value of={record.votes.count} as="count" />
              </Stat>
              <Stat name="Votes in 30 days">
                <Value of={record.votes30d} as="count" />
              </Stat>
              <Stat name="Addresses that voted">
                <Value of={record.votes.uniqueAddressesCount} as="count" />
              </Stat>
              <Stat name="Newest proposal">
                <Moment at={record.lastProposalAt} why="It has none." />
              </Stat>
              <Stat name="Snapshot space">{space ?? <Unknown why="It has no space that we know of." />}</Stat>
            </Stats>
          )
        }
      </Shown>
    </Card>
  )
}

type Proposal = Answer<'/data/daos/governance/proposals'>[number]

const isWeb = (url: string | null): url is string => url !== null && /^https?:\/\//.test(url)

/** The choice with the highest score. */
function toLeading({ choices, scores }: Proposal): string | undefined {
  const most = Math.max(...scores)
  return most > 0 ? choices[scores.indexOf(most)] : undefined
}

const PROPOSALS: readonly Column<Proposal>[] = [
  {
    title: 'Proposal',
    cell: ({ title, url }) => (
      <span class="text">
        {isWeb(url) ? (
          <a href={url} target="_blank" rel="noreferrer nofollow">
            {title}
          </a>
        ) : (
          title
        )}
      </span>
    ),
  },
  { title: 'State', cell: ({ state }) => state ?? <Unknown why="The source has not told it." /> },
  { title: 'Leading', cell: (proposal) => toLeading(proposal) ?? <Unknown why="Nothing has a score yet." /> },
  { title: 'Votes', isNumber: true, cell: ({ votes }) => <Value of={votes} as="count" /> },
  { title: 'Score', isNumber: true, cell: ({ scoresTotal }) => <Value of={scoresTotal} as="amount" /> },
  { title: 'Ends', cell: ({ endsAt }) => <Moment at={endsAt} /> },
]

function Proposals({ id }: { id: string }) {
  const question = toQuestion('/data/daos/governance/proposals', { id, limit: MOST })
  const proposals = useAnswer(question)
  return (
    <Card title="Newest proposals" question={question} facts={proposals.given?.facts}>
      <Shown of={proposals} what="proposals" isEmpty={(data) => data.length === 0} empty={NO_SPACE}>
        {(data) => (
          <RecordTable caption="Newest proposals" columns={PROPOSALS} records={data} keyOf={({ _id }) => _id} />
        )}
      </Shown>
    </Card>
  )
}

function Voters({ id }: { id: string }) {
  const question = toQuestion('/data/daos/governance/voters', { id, limit: MOST })
  const voters = useAnswer(question)
  return (
    <Card title="Who votes most" question={question} facts={voters.given?.facts}>
      <Shown of={voters} what="voters" isEmpty={(data) => data.length === 0} empty={NO_SPACE}>
        {(data) => (
          <RecordTable
            caption="Those who vote most"
            records={data}
            keyOf={({ voter }) => voter}
            columns={[
              { title: 'Voter', cell: ({ voter }) => <code title={voter}>{toShort(voter)}</code> },
              { title: 'Votes', isNumber: true, cell: ({ votes }) => <Value of={votes} as="count" /> },
              {
                title: 'Power of the last',
                isNumber: true,
                cell: ({ lastVotingPower }) => <Value of={lastVotingPower} as="amount" />,
              },
              { title: 'Last', cell: ({ lastVoteAt }) => <Moment at={lastVoteAt} /> },
            ]}
          />
        )}
      </Shown>
    </Card>
  )
}

/** How a DAO decides: how much is voted, on what and by whom. */
export function Governance({ id, space }: { id: string; space: string | null }) {
  return (
    <>
      <Summary id={id} space={space} />
      <Proposals id={id} />
      <Voters id={id} />
    </>
  )
}
