import { useMemo } from 'preact/hooks'
import { useAnswer } from '../answers.ts'
import { useStart } from '../clock.ts'
import { toShort } from '../format.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { chosen } from '../parts/choice.tsx'
import { toDrawing } from '../parts/drawing.ts'
import { type Column, RecordTable, stacked } from '../parts/record-table.tsx'
import { SeriesChart } from '../parts/series-chart.tsx'
import { isNone, Shown } from '../parts/shown.tsx'
import { Change, Unknown, Value } from '../parts/value.tsx'
import { isEmbed } from '../place.ts'
import { RANGES } from '../ranges.ts'
import { useDataMarks } from './gaps.tsx'
import { useVoteEnds } from './proposals.tsx'
import { compareAssets, sumByAsset } from './treasury-assets.ts'
import { TreasuryFlows } from './treasury-flows.tsx'

const NO_PRICE = 'No source has a price.'
const NO_TREASURY = 'No treasury of this DAO is collected.'
const NOT_PROVIDED = 'The source does not report it.'

const CHANGES = [
  ['Change, 24 hours', 'percentChange24h'],
  ['Change, 7 days', 'percentChange7d'],
  ['Change, 30 days', 'percentChange30d'],
] as const

/** The value of a treasury and its changes; only the labels while it is loading. */
function Worth({ of }: { of?: Answer<'/data/daos/treasury'>[number]['treasuryData'] }) {
  return (
    <Stats>
      <Stat name="Value">{of === undefined ? '…' : <Value of={of.valueUsd} as="usd" />}</Stat>
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
  return (
    <Card title="Treasury" question={question} facts={treasuries.received?.facts}>
      <Shown
        of={treasuries}
        what="the treasury"
        isEmpty={(data) => data.length === 0}
        empty={NO_TREASURY}
        outline={<Worth />}
      >
        {([record]) =>
          record !== undefined && (
            <>
              <Worth of={record.treasuryData} />
              {record.treasuryData.isPartial && (
                <p class="note">Some holdings could not be read: this is the value of the others.</p>
              )}
            </>
          )
        }
      </Shown>
    </Card>
  )
}

type Points = Answer<'/data/daos/treasury/historic'>

const toLines = (points: Points) =>
  toDrawing<Points[number]>(points, {
    kind: 'stack',
    as: 'usd',
    at: ({ recordedAt }) => recordedAt,
    lines: [
      ['total', ({ valueUsd }) => valueUsd],
      ['own token', ({ ownTokenUsd }) => ownTokenUsd],
      ['stablecoins', ({ stablecoinUsd }) => stablecoinUsd],
      ['other', ({ otherUsd: restUsd }) => restUsd],
    ],
  })

/** A treasury has one value a day. */
const TREASURY_RANGES = RANGES.filter((range) => range !== '24h')

/** The value of a treasury by kind, over 90 days unless the address of an embedded chart has another range. */
export function TreasuryHistory({ id, name }: { id: string; name: string }) {
  const range = isEmbed ? chosen('range', TREASURY_RANGES, '90d') : '90d'
  const start = useStart(range, '1d')
  const query = { id, start, interval: '1d', order: 'asc', fill: 'null' } as const
  const question = toQuestion('/data/daos/treasury/historic', query)
  const series = useAnswer(question)
  const shown = isEmbed ? undefined : id
  const [votes, marks] = [useVoteEnds(shown), useDataMarks('treasury', shown, { start, range })]
  const events = useMemo(() => [...votes, ...marks], [votes, marks])
  if (isNone(series)) return isEmbed ? <p class="state empty">{NO_TREASURY}</p> : null
  return (
    <SeriesChart
      title={isEmbed ? `${name}: treasury` : 'Treasury over time'}
      name={`${name}: treasury, ${range === '90d' ? '90 days' : range}`}
      embedding={{ path: `daos/${id}`, query: { range } }}
      question={question}
      series={series}
      toDrawing={toLines}
      events={events}
      isLow
    />
  )
}

type Holding = Answer<'/data/daos/treasury/holdings'>[number]

const KINDS = { own: 'own token', stable: 'stablecoin', other: 'other' } as const
const KIND: Column<{ readonly kind: keyof typeof KINDS }> = { title: 'Kind', cell: ({ kind }) => KINDS[kind] }
const MOST = 100
/** The API's limit of holdings. */
const MOST_ASSETS = 500
const DAY_MS = 86_400_000

const NOT_COMPARABLE = 'There is no comparable data of 30 days before.'

/** The assets of a treasury with their changes over 30 days, the largest first; `most` limits their number. */
export function TreasuryAssets({
  id,
  chains,
  most,
}: {
  id: string
  chains: ReadonlyMap<string, string>
  most?: number
}) {
  const query = { id, sort: '-valueUsd', limit: MOST_ASSETS }
  const question = toQuestion('/data/daos/treasury/holdings', query)
  const holdings = useAnswer(question)
  const asOf = holdings.received?.facts.asOf
  const earlier = useAnswer(
    asOf === undefined
      ? undefined
      : toQuestion('/data/daos/treasury/holdings', {
          ...query,
          asOf: new Date(asOf.getTime() - 30 * DAY_MS).toISOString(),
        }),
  )
  const kinds = useAnswer(toQuestion('/data/daos/treasury/kinds', { id: [id] }))
  // The API compares treasuries of the same source only.
  const past = earlier.received
  const isComparable =
    past !== undefined &&
    past.data.length > 0 &&
    past.data.length >= (past.facts.total ?? 0) &&
    typeof kinds.received?.data[0]?.percentChange30d === 'number'
  if (isNone(holdings)) return null
  return (
    <Card title="Change by asset, 30 days" question={question} facts={holdings.received?.facts}>
      <Shown of={holdings} what="assets" rows={10}>
        {(data) => (
          <RecordTable
            caption="Change by asset"
            records={compareAssets(sumByAsset(data), isComparable ? sumByAsset(past.data) : undefined).slice(0, most)}
            keyOf={({ key }) => key}
            columns={[
              {
                title: 'Asset',
                cell: ({ symbol, token, chain }) => (
                  <>
                    {token === null ? symbol : <a href={`tokens/${token}`}>{symbol}</a>}{' '}
                    <small>{chain === null ? '' : chains.get(chain)}</small>
                  </>
                ),
              },
              VALUE,
              {
                title: 'Value change, 30 d',
                isNumber: true,
                cell: ({ valueChange }) => <Value of={valueChange} as="usdChange" why={NOT_COMPARABLE} />,
              },
              { title: 'Quantity', isNumber: true, cell: ({ quantity }) => <Value of={quantity} as="amount" /> },
              {
                title: 'Quantity change, 30 d',
                isNumber: true,
                cell: ({ quantityChange }) => <Value of={quantityChange} as="amountChange" why={NOT_COMPARABLE} />,
              },
              KIND,
            ]}
          />
        )}
      </Shown>
    </Card>
  )
}

const VALUE: Column<{ readonly valueUsd: number | null }> = {
  title: 'Value',
  isNumber: true,
  cell: ({ valueUsd }) => <Value of={valueUsd} as="usd" why={NO_PRICE} />,
}

const QUANTITY: Column<Holding> = {
  title: 'Quantity',
  isNumber: true,
  isWide: true,
  cell: ({ quantity }) => <Value of={quantity} as="amount" />,
}

const PRICE: Column<Holding> = {
  title: 'Price',
  isNumber: true,
  isWide: true,
  cell: ({ priceUsd }) => <Value of={priceUsd} as="usd" why={NO_PRICE} />,
}

const ASSET: Column<Holding> = {
  title: 'Asset',
  cell: ({ symbol, token }) => (token === null ? symbol : <a href={`tokens/${token}`}>{symbol}</a>),
}

const toColumns = (chains: ReadonlyMap<string, string>): readonly Column<Holding>[] => [
  stacked(ASSET, PRICE, 'price'),
  { ...KIND, isWide: true },
  QUANTITY,
  PRICE,
  stacked(VALUE, QUANTITY, 'quantity'),
  {
    title: 'Chain',
    cell: ({ chain }) => (chain === null ? <Unknown why={NOT_PROVIDED} /> : (chains.get(chain) ?? '…')),
  },
  {
    title: 'Address',
    cell: ({ address }) =>
      address === null ? <Unknown why={NOT_PROVIDED} /> : <code title={address}>{toShort(address)}</code>,
  },
]

function Holdings({ id, chains }: { id: string; chains: ReadonlyMap<string, string> }) {
  const question = toQuestion('/data/daos/treasury/holdings', { id, sort: '-valueUsd', limit: MOST })
  const holdings = useAnswer(question)
  const empty = 'Only the total of this treasury is known.'
  return (
    <Card title="Holdings" question={question} facts={holdings.received?.facts}>
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

/** The treasury of a DAO: its total, its history, its transfers, its change by asset, and its holdings by asset, chain and address. */
export function Treasury({ id, name }: { id: string; name: string }) {
  const { received } = useAnswer(toQuestion('/data/chains', {}))
  const chains = new Map(received?.data.map(({ _id, name: chain }) => [_id, chain]))
  return (
    <div class="column">
      <Summary id={id} />
      <TreasuryHistory id={id} name={name} />
      <TreasuryFlows id={id} name={name} />
      <TreasuryAssets id={id} chains={chains} />
      <Holdings id={id} chains={chains} />
    </div>
  )
}
