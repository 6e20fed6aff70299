import { useAnswer } from '../answers.ts'
import { useStart } from '../clock.ts'
import { toShort } from '../format.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { toDrawing } from '../parts/drawing.ts'
import { type Column, RecordTable } from '../parts/record-table.tsx'
import { SeriesChart } from '../parts/series-chart.tsx'
import { Shown } from '../parts/shown.tsx'
import { Change, Unknown, Value } from '../parts/value.tsx'

const NO_PRICE = 'No source has a price of it.'
const NOT_PROVIDED = 'The source does not tell it.'

const CHANGES = [
  ['24 hours', 'percentChange24h'],
  ['7 days', 'percentChange7d'],
  ['30 days', 'percentChange30d'],
] as const

/** The value of a treasury and its changes; only the labels while it is loading. */
function Worth({ of }: { of?: Answer<'/data/daos/treasury'>[number]['treasuryData'] }) {
  return (
    <Stats>
      <Stat name="Worth">{of === undefined ? '…' : <Value of={of.valueUsd} as="usd" />}</Stat>
      {CHANGES.map(([name, member]) => (
        <Stat key={member} name={name}>
          {of === undefined ? '…' : <Change of={of[member]} />}
        </Stat>
      ))}
    </Stats>
  )
}

function Summary({ id }: { id: string }) {
  const question = toQuestion('/data/daos/treasury', { id: [id] })
  const treasuries = useAnswer(question)
  const empty = 'Not known: no treasury of this DAO is collected.'
  return (
    <Card title="Treasury" question={question} facts={treasuries.received?.facts}>
      <Shown
        of={treasuries}
        what="the treasury"
        isEmpty={(data) => data.length === 0}
        empty={empty}
        outline={<Worth />}
      >
        {([record]) => record !== undefined && <Worth of={record.treasuryData} />}
      </Shown>
    </Card>
  )
}

type Points = Answer<'/data/daos/treasury/historic'>

const toLines = (points: Points) =>
  toDrawing<Points[number]>(points, {
    as: 'usd',
    at: ({ recordedAt }) => recordedAt,
    lines: [
      ['all', ({ valueUsd }) => valueUsd],
      ['own token', ({ ownTokenUsd }) => ownTokenUsd],
      ['stablecoins', ({ stablecoinUsd }) => stablecoinUsd],
      ['other', ({ otherUsd: restUsd }) => restUsd],
    ],
  })

function History({ id, name }: { id: string; name: string }) {
  const start = useStart('90d', '1d')
  const query = { id, start, interval: '1d', order: 'asc', fill: 'null' } as const
  const question = toQuestion('/data/daos/treasury/historic', query)
  return (
    <SeriesChart
      title="Treasury over time"
      name={`${name}: treasury, 90 days`}
      question={question}
      series={useAnswer(question)}
      toDrawing={toLines}
      isLow
    />
  )
}

type Holding = Answer<'/data/daos/treasury/holdings'>[number]

const KINDS = { own: 'own token', stable: 'stablecoin', other: 'other' } as const
const MOST = 100

const toColumns = (chains: ReadonlyMap<string, string>): readonly Column<Holding>[] => [
  {
    title: 'Asset',
    cell: ({ symbol, token }) => (token === null ? symbol : <a href={`tokens/${token}`}>{symbol}</a>),
  },
  { title: 'Kind', cell: ({ kind }) => KINDS[kind] },
  { title: 'Quantity', isNumber: true, cell: ({ quantity }) => <Value of={quantity} as="amount" /> },
  { title: 'Price', isNumber: true, cell: ({ priceUsd }) => <Value of={priceUsd} as="usd" why={NO_PRICE} /> },
  { title: 'Worth', isNumber: true, cell: ({ valueUsd }) => <Value of={valueUsd} as="usd" why={NO_PRICE} /> },
  {
    title: 'Chain',
    cell: ({ chain }) => (chain === null ? <Unknown why={NOT_PROVIDED} /> : (chains.get(chain) ?? chain)),
  },
  {
    title: 'Address',
    cell: ({ address }) =>
      address === null ? <Unknown why={NOT_PROVIDED} /> : <code title={address}>{toShort(address)}</code>,
  },
]

function Holdings({ id }: { id: string }) {
  const question = toQuestion('/data/daos/treasury/holdings', { id, sort: '-valueUsd', limit: MOST })
  const holdings = useAnswer(question)
  const { received } = useAnswer(toQuestion('/data/chains', {}))
  const chains = new Map(received?.data.map(({ _id, name }) => [_id, name]))
  const empty = 'Not known: what it is made of was not kept.'
  return (
    <Card title="What it holds" question={question} facts={holdings.received?.facts}>
      <Shown of={holdings} what="holdings" isEmpty={(data) => data.length === 0} empty={empty}>
        {(data, { total }) => (
          <>
            <RecordTable
              caption="Holdings"
              columns={toColumns(chains)}
              records={data}
              keyOf={(_holding, index) => index}
            />
            {total !== undefined && total > data.length && (
              <p class="note">
                The {data.length} largest of {total}.
              </p>
            )}
          </>
        )}
      </Shown>
    </Card>
  )
}

/** The treasury of a DAO: its total, its history, and its holdings by asset, chain and address. */
export function Treasury({ id, name }: { id: string; name: string }) {
  return (
    <div class="column">
      <Summary id={id} />
      <History id={id} name={name} />
      <Holdings id={id} />
    </div>
  )
}
