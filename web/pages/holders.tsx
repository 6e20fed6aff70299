import { useAnswer } from '../answers.ts'
import { toShort } from '../format.ts'
import { toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { RecordTable } from '../parts/record-table.tsx'
import { Shown } from '../parts/shown.tsx'
import { Value } from '../parts/value.tsx'

const NO_HOLDERS = 'Not known: no provider has told who holds this token.'
const MOST = 15

/** Who holds a token. */
export function Holders({ id, symbol }: { id: string; symbol: string }) {
  const question = toQuestion('/data/tokens/holders', { id: [id] })
  const holders = useAnswer(question)
  return (
    <Card title="Holders" question={question} facts={holders.given?.facts}>
      <Shown of={holders} what="holders" isEmpty={(data) => data.length === 0} empty={NO_HOLDERS}>
        {([record]) =>
          record !== undefined && (
            <>
              <Stats>
                <Stat name="Addresses">
                  <Value of={record.holdersData.totalHolders} as="count" />
                </Stat>
                <Stat name="The largest 100 hold">
                  <Value of={record.holdersData.top100Share} as="percent" />
                </Stat>
              </Stats>
              <RecordTable
                caption={`The ${MOST} largest holders`}
                records={record.holdersData.topHolders.slice(0, MOST)}
                keyOf={({ address }) => address}
                columns={[
                  {
                    title: 'Address',
                    cell: ({ address }) => <code title={address}>{toShort(address)}</code>,
                  },
                  { title: symbol, isNumber: true, cell: ({ amount }) => <Value of={amount} as="amount" /> },
                  { title: 'Worth', isNumber: true, cell: ({ amountUsd }) => <Value of={amountUsd} as="usd" /> },
                  { title: 'Share', isNumber: true, cell: ({ share }) => <Value of={share} as="percent" /> },
                ]}
              />
            </>
          )
        }
      </Shown>
    </Card>
  )
}
