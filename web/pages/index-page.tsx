import { useAnswer } from '../answers.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { Choice, chosen } from '../parts/choice.tsx'
import { HeatMap } from '../parts/heat-map.tsx'
import { Mark } from '../parts/mark.tsx'
import { type Column, RecordTable, stacked } from '../parts/record-table.tsx'
import { Shown } from '../parts/shown.tsx'
import { TimeValue, Value } from '../parts/value.tsx'
import { IndexChart } from './index-chart.tsx'
import { useIndexNow } from './index-now.ts'

const REMOVED_NOTE = 'Removed from the Index, without a price.'

type Member = Answer<'/data/index/weights'>[number]

const WEIGHTS = toQuestion('/data/index/weights', { sort: '-weight' })

const MemberLink = ({ of: { token, symbol } }: { of: Member }) => (
  <a class="named" href={`tokens/${token}`}>
    <Mark id={token} />
    {symbol}
  </a>
)

/** The periods of contributions in days; the first one is part of every answer. */
const CONTRIBUTED = ['1', '7', '30', '90'] as const

function Members() {
  const days = chosen('contribution', CONTRIBUTED, '1')
  const question = days === '1' ? WEIGHTS : toQuestion('/data/index/weights', { sort: '-weight', days })
  const members = useAnswer(question)
  const period = days === '1' ? '24 h' : `${days} d`
  const controls = (
    <div class="choices">
      <Choice
        name="contribution"
        label="Period of the contributions"
        options={CONTRIBUTED.map((value) => ({ value, text: value === '1' ? '24 h' : `${value} d` }))}
        value={days}
      />
    </div>
  )
  return (
    <Card title="Composition" question={question} facts={members.received?.facts} controls={controls}>
      <Shown of={members} what="members" isEmpty={(data) => data.length === 0}>
        {(data) => (
          <RecordTable<Member>
            caption="Members of the Index"
            records={data}
            keyOf={({ token }) => token}
            columns={[
              {
                title: 'Token',
                cell: (member) => <MemberLink of={member} />,
              },
              {
                title: 'Weight',
                isNumber: true,
                cell: ({ weight }) => <Value of={weight} as="share" why={REMOVED_NOTE} />,
              },
              {
                title: `Contribution, ${period}`,
                isNumber: true,
                cell: (member) => (
                  <Value
                    of={
                      days === '1' ? member.contribution24h : 'contribution' in member ? member.contribution : undefined
                    }
                    as="points"
                    why={`The Index had no value ${days === '1' ? '24 hours' : `${days} days`} before.`}
                  />
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

type Token = Answer<'/data/tokens'>[number]

const PERIODS = [
  ['1 h', 1 / 24, 'percentChange1h'],
  ['24 h', 1, 'percentChange24h'],
  ['7 d', 7, 'percentChange7d'],
  ['30 d', 30, 'percentChange30d'],
  ['60 d', 60, 'percentChange60d'],
  ['90 d', 90, 'percentChanged90d'],
] as const

/** The changes of the members' prices, the member with the largest weight first. */
function Changes() {
  const members = useAnswer(WEIGHTS)
  // A removed token has a quantity of 0.
  const current = members.received?.data.filter(({ quantity }) => quantity > 0)
  const id = current?.map(({ token }) => token)
  const question = id && id.length > 0 ? toQuestion('/data/tokens', { id, limit: id.length }) : undefined
  const tokens = useAnswer(question)
  const toColumns = (records: readonly Token[]) => {
    const byId = new Map(records.map(({ _id, financialData }) => [_id, financialData]))
    return PERIODS.map(([title, days, member]) => ({
      ...{ title, days },
      value: ({ token }: Member) => byId.get(token)?.[member],
    }))
  }
  return (
    <Card title="Changes of the members" question={question} facts={tokens.received?.facts}>
      <Shown of={members} what="members" isEmpty={() => question === undefined} rows={10}>
        {() => (
          <Shown of={tokens} what="prices" rows={10}>
            {(records) => (
              <HeatMap
                caption="Changes of the members"
                records={current ?? []}
                keyOf={({ token }) => token}
                title="Token"
                cell={(member) => <MemberLink of={member} />}
                columns={toColumns(records)}
              />
            )}
          </Shown>
        )}
      </Shown>
    </Card>
  )
}

const TO: Column<Answer<'/data/index/compositions'>[number]> = {
  title: 'To',
  isWide: true,
  cell: ({ to }) => (to === null ? 'now' : <TimeValue at={to} />),
}

function Compositions() {
  const question = toQuestion('/data/index/compositions', { sort: '-from' })
  const compositions = useAnswer(question)
  return (
    // Without the time of the data: a composition holds until the next one, however long ago it began.
    <Card title="Past compositions" question={question}>
      <Shown of={compositions} what="compositions" isEmpty={(data) => data.length === 0}>
        {(data) => (
          <RecordTable
            caption="Compositions so far"
            records={data}
            keyOf={({ _id, from }) => `${_id} ${from}`}
            columns={[
              stacked({ title: 'From', cell: ({ from }) => <TimeValue at={from} /> }, TO, 'to'),
              TO,
              {
                title: 'Tokens',
                isNumber: true,
                isWide: true,
                cell: ({ elements }) => <Value of={elements.length} as="count" />,
              },
              {
                title: 'Members',
                cell: ({ elements }) => (
                  <span class="text short">{elements.map(({ symbol }) => symbol).join(', ')}</span>
                ),
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
          <>
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
            <p class="note">
              Price and supply as the token's contract has them. The value of the Index is computed from the prices of
              its members.
            </p>
          </>
        )}
      </Shown>
    </Card>
  )
}

/** The newest value of the Index, and since when. */
function Heading() {
  const { valueUsd, failure } = useIndexNow()
  return (
    <div class="title">
      <h1>Index</h1>
      <span class="large">
        {(valueUsd !== null || failure !== undefined) && (
          <Value of={valueUsd} as="usd" why="No value was computed in the last 24 hours." />
        )}
      </span>
    </div>
  )
}

/** The Index: a basket of DAO tokens, and the on-chain token with its name. */
export function IndexPage() {
  return (
    <>
      <div class="about">
        <Heading />
        <p class="links">
          <a href="guides/index-methodology">Methodology</a>
          <a href="guides/index-values">Computing it yourself</a>
          <a href="baskets">Own baskets</a>
        </p>
      </div>
      <IndexChart usual="all" />
      <IndexToken />
      <Changes />
      <Members />
      <Compositions />
    </>
  )
}
