import { useAnswer } from '../answers.ts'
import { toShort } from '../format.ts'
import { toQuestion } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import { RecordTable } from '../parts/record-table.tsx'
import { Shown } from '../parts/shown.tsx'
import { TimeValue, Value } from '../parts/value.tsx'

const MOST_VOTERS = 10

/** The voters with the most votes in a DAO. */
export function Voters({ id }: { id: string }) {
  const question = toQuestion('/data/daos/governance/voters', { id, limit: MOST_VOTERS })
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
              { title: 'Voter', cell: ({ voter }) => <code title={voter}>{toShort(voter)}</code> },
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
