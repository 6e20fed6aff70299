import { useAnswer } from '../answers.ts'
import { toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { Mark } from '../parts/mark.tsx'
import { RecordTable } from '../parts/record-table.tsx'
import { Shown } from '../parts/shown.tsx'
import { Moment, Value } from '../parts/value.tsx'
import { IndexChart } from './index-chart.tsx'

function Members() {
  const question = toQuestion('/data/index/composition', { sort: 'name' })
  const members = useAnswer(question)
  return (
    <Card title="What is in it" question={question} facts={members.given?.facts}>
      <Shown of={members} what="members" isEmpty={(data) => data.length === 0}>
        {(data) => (
          <RecordTable
            caption="Members of the Index"
            records={data}
            keyOf={({ token }) => token}
            columns={[
              {
                title: 'Token',
                cell: ({ token, name, symbol }) => (
                  <a class="named" href={`tokens/${token}`}>
                    <Mark id={token} />
                    {name} <small>{symbol}</small>
                  </a>
                ),
              },
              { title: 'Quantity', isNumber: true, cell: ({ quantity }) => <Value of={quantity} as="amount" /> },
              { title: 'DAO', cell: ({ dao }) => dao },
              { title: 'Chain', cell: ({ chain }) => chain },
              { title: 'Category', cell: ({ category }) => category.join(', ') },
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
    <Card title="The Index Token" question={question} facts={token.given?.facts} hasTables={false}>
      <Shown of={token} what="the Index Token">
        {({ value, totalSupply, valueUsd, createdAt }) => (
          <Stats>
            <Stat name="One is worth">
              <Value of={valueUsd} as="usd" />
            </Stat>
            <Stat name="All of it, in ETH">{value}</Stat>
            <Stat name="Supply">{totalSupply}</Stat>
            <Stat name="Read from the chain">
              <Moment at={createdAt} />
            </Stat>
          </Stats>
        )}
      </Shown>
    </Card>
  )
}

/** The Index: a basket of DAO tokens, and the token on a chain that has its name. */
export function IndexPage() {
  return (
    <>
      <h1>Index</h1>
      <IndexChart usual="all" />
      <IndexToken />
      <Members />
    </>
  )
}
