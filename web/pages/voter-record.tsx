import { useAnswer } from '../answers.ts'
import { toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { RecordTable } from '../parts/record-table.tsx'
import { Shown } from '../parts/shown.tsx'
import { TimeValue, Value } from '../parts/value.tsx'

const NO_POWER = 'The power at the start of these votes is not known.'
const NO_VOTES = 'No votes in this time.'

/** How an address took part in the proposals of a DAO that ended in the last 90 days, which is the API's range. */
export function VotingRecord({ address, dao, name }: { address: string; dao: string; name: string }) {
  const question = toQuestion('/data/daos/governance/record', { id: dao, address: [address] })
  const record = useAnswer(question)
  return (
    <Card title={`Record in ${name}, 90 days`} question={question} facts={record.received?.facts}>
      <Shown of={record} what="the record">
        {(data) => (
          <>
            <Stats>
              <Stat name="Participation">
                <Value of={data.participation} as="share" why="No vote ended in this time." />
              </Stat>
              <Stat name="Voted">
                <Value of={data.voted} as="count" /> <small>of {data.proposals}</small>
              </Stat>
              <Stat name="Missed">
                <Value of={data.missed} as="count" />
              </Stat>
              <Stat name="On governors">
                <Value of={data.onchain.participation} as="share" why="No vote ended on a governor in this time." />
              </Stat>
              <Stat name="On Snapshot">
                <Value of={data.offchain.participation} as="share" why="No vote ended on Snapshot in this time." />
              </Stat>
              <Stat name="When it had power">
                <Value of={data.participationWhenEligible} as="share" why={NO_POWER} />
              </Stat>
              <Stat name="With the majority">
                <Value of={data.withMajorityShare} as="share" why={NO_VOTES} />
              </Stat>
              <Stat name="Median hours before the end">
                <Value of={data.medianHoursBeforeEnd} as="amount" why={NO_VOTES} />
              </Stat>
              <Stat name="Rank among delegates">
                <Value
                  of={data.rank}
                  as="count"
                  why="The address has no delegated power, or delegations are not collected."
                />
              </Stat>
            </Stats>
            {data.missedProposals.length > 0 && (
              <RecordTable
                caption="Missed proposals"
                records={data.missedProposals}
                keyOf={({ _id }) => _id}
                columns={[
                  {
                    title: 'Missed proposal',
                    cell: ({ _id, title }) => (
                      <span class="titled">
                        <a href={`daos/${dao}/proposals/${_id}`}>{title || 'Proposal without a title'}</a>
                      </span>
                    ),
                  },
                  { title: 'Ended', cell: ({ endsAt }) => <TimeValue at={endsAt} /> },
                  { title: 'On', cell: ({ source }) => (source === 'governor' ? 'governor' : 'Snapshot') },
                ]}
              />
            )}
            {data.unknown > 0 && (
              <p class="note">
                {data.unknown} of the proposals have votes that are not completely known: they are neither voted nor
                missed.
              </p>
            )}
          </>
        )}
      </Shown>
    </Card>
  )
}
