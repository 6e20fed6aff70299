import { useAnswer } from '../answers.ts'
import { toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { Mark } from '../parts/mark.tsx'
import { RecordTable } from '../parts/record-table.tsx'
import { Shown } from '../parts/shown.tsx'
import { TimeValue, Value } from '../parts/value.tsx'
import { IndexChart } from './index-chart.tsx'

const REMOVED_NOTE = 'Removed from the Index, without a price.'

function Members() {
  const question = toQuestion('/data/index/weights', { sort: '-weight' })
  const members = useAnswer(question)
  return (
    <Card title="Composition" question={question} facts={members.received?.facts}>
      <Shown of={members} what="members" isEmpty={(data) => data.length === 0}>
        {(data) => (
          <RecordTable
            caption="Members of the Index"
            records={data}
            keyOf={({ token }) => token}
            columns={[
              {
                title: 'Token',
                cell: ({ token, symbol }) => (
                  <a class="named" href={`tokens/${token}`}>
                    <Mark id={token} />
                    {symbol}
                  </a>
                ),
              },
              {
                title: 'Weight',
                isNumber: true,
                cell: ({ weight }) => <Value of={weight} as="share" why={REMOVED_NOTE} />,
              },
              {
                title: 'Contribution, 24 h',
                isNumber: true,
                cell: ({ contribution24h }) => (
                  <Value of={contribution24h} as="points" why="The Index had no value 24 hours before." />
                ),
              },
              {
                title: 'Price',
                isNumber: true,
                cell: ({ priceUsd }) => <Value of={priceUsd} as="usd" why={REMOVED_NOTE} />,
              },
              { title: 'Quantity', isNumber: true, cell: ({ quantity }) => <Value of={quantity} as="amount" /> },
              {
                title: 'Value',
                isNumber: true,
                cell: ({ valueUsd }) => <Value of={valueUsd} as="usd" why={REMOVED_NOTE} />,
              },
            ]}
          />
        )}
      </Shown>
    </Card>
  )
}

function Compositions() {
  const question = toQuestion('/data/index/compositions', { sort: '-from' })
  const compositions = useAnswer(question)
  return (
    <Card title="Past compositions" question={question} facts={compositions.received?.facts}>
      <Shown of={compositions} what="compositions" isEmpty={(data) => data.length === 0}>
        {(data) => (
          <RecordTable
            caption="Compositions so far"
            records={data}
            keyOf={({ _id, from }) => `${_id} ${from}`}
            columns={[
              { title: 'From', cell: ({ from }) => <TimeValue at={from} /> },
              { title: 'To', cell: ({ to }) => (to === null ? 'now' : <TimeValue at={to} />) },
              { title: 'Tokens', isNumber: true, cell: ({ elements }) => <Value of={elements.length} as="count" /> },
              {
                title: 'Members',
                cell: ({ elements }) => <span class="text">{elements.map(({ symbol }) => symbol).join(', ')}</span>,
              },
            ]}
          />
        )}
      </Shown>
    </Card>
  )
}

function IndexToken() {
  const question = toQuestion('/data/index/token-data', {})
  const token = useAnswer(question)
  return (
    <Card title="The Index Token" question={question} facts={token.received?.facts} hasTables={false}>
      <Shown of={token} what="the Index Token">
        {({ value, totalSupply, valueUsd, createdAt }) => (
          <Stats>
            <Stat name="Price">
              <Value of={valueUsd} as="usd" />
            </Stat>
            <Stat name="ETH locked">
              <Value of={Number(value)} as="amount" />
            </Stat>
            <Stat name="Supply">
              <Value of={Number(totalSupply)} as="amount" />
            </Stat>
            <Stat name="Updated">
              <TimeValue at={createdAt} />
            </Stat>
          </Stats>
        )}
      </Shown>
    </Card>
  )
}

/** The Index: a basket of DAO tokens, and the on-chain token with its name. */
export function IndexPage() {
  return (
    <>
      <h1>Index</h1>
      <IndexChart usual="all" />
      <IndexToken />
      <Members />
      <Compositions />
    </>
  )
}
