import { useAnswer } from '../answers.ts'
import { toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { Shown } from '../parts/shown.tsx'
import { TimeValue, Unknown, Value } from '../parts/value.tsx'
import { Proposals } from './proposals.tsx'
import { Delegates, Voters, VotingPower } from './voters.tsx'

const NO_SPACE = 'No Snapshot space of this DAO is collected, or it was not read completely yet.'

export function GovernanceSummary({ id, space }: { id: string; space: string | null }) {
  const question = toQuestion('/data/daos/governance/summary', { id: [id] })
  const governance = useAnswer(question)
  return (
    <Card title="Votes on Snapshot" question={question} facts={governance.received?.facts}>
      <Shown of={governance} what="votes" isEmpty={(data) => data.length === 0} empty={NO_SPACE}>
        {([record]) =>
          record !== undefined && (
            <Stats>
              <Stat name="Proposals">
                <Value of={record.proposals} as="count" />
              </Stat>
              <Stat name="Active proposals">
                <Value of={record.activeProposals} as="count" />
              </Stat>
              <Stat name="Votes">
                <Value of={record.votes.count} as="count" />
              </Stat>
              <Stat name="Votes, 30 days">
                <Value of={record.votes30d} as="count" />
              </Stat>
              <Stat name="Voters">
                <Value of={record.votes.uniqueAddressesCount} as="count" />
              </Stat>
              <Stat name="Newest proposal">
                <TimeValue at={record.lastProposalAt} why="No proposals." />
              </Stat>
              <Stat name="Snapshot space">{space ?? <Unknown why="No Snapshot space known." />}</Stat>
            </Stats>
          )
        }
      </Shown>
    </Card>
  )
}

/** Governance of a DAO: votes, proposals and voters. */
export function Governance({ id, space }: { id: string; space: string | null }) {
  return (
    <>
      <GovernanceSummary id={id} space={space} />
      <Proposals id={id} />
      <div class="grid">
        <VotingPower id={id} />
        <Delegates id={id} />
        <Voters id={id} />
      </div>
    </>
  )
}
