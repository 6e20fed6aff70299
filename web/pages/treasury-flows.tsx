import { useAnswer } from '../answers.ts'
import { useStart } from '../clock.ts'
import { toShort } from '../format.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { chosen } from '../parts/choice.tsx'
import { type Column, RecordTable, stacked } from '../parts/record-table.tsx'
import { SeriesChart } from '../parts/series-chart.tsx'
import { isNone, Shown } from '../parts/shown.tsx'
import { DayValue, Unknown, Value } from '../parts/value.tsx'
import { isEmbed } from '../place.ts'
import { toMonths } from './flow-months.ts'

const NO_PRICE = 'No stored price of that day.'
const NO_FLOWS = 'No transfers of this treasury are collected.'
/** Rows of a table of payments or addresses. */
const MOST = 10

/** The bars are of months. */
const MONTHLY_RANGES = ['90d', '1y', 'all'] as const

/** Income, spending and their sum by month, of all time unless the address of an embedded chart has another range. */
export function FlowHistory({ id, name }: { id: string; name: string }) {
  const range = isEmbed ? chosen('range', MONTHLY_RANGES, 'all') : 'all'
  const start = useStart(range, '1d')
  const question = toQuestion('/data/daos/treasury/flows/historic', {
    ...{ id, start, interval: '1M', by: 'kind', order: 'asc', limit: 1_000 },
  })
  const series = useAnswer(question)
  if (isNone(series)) return isEmbed ? <p class="state empty">{NO_FLOWS}</p> : null
  const title = 'Income and spending by month'
  return (
    <SeriesChart
      title={isEmbed ? `${name}: ${title.toLowerCase()}` : title}
      name={`${name}: income and spending by month`}
      embedding={{ path: `daos/${id}`, query: { metric: 'flows', range } }}
      question={question}
      series={series}
      toDrawing={toMonths}
      isLow
    />
  )
}

/** How long the treasury lasts, with the definition in words. */
export function Runway({ id }: { id: string }) {
  const question = toQuestion('/data/daos/treasury/runway', { id: [id] })
  const runways = useAnswer(question)
  return (
    <Card title="Runway" question={question} facts={runways.received?.facts}>
      <Shown of={runways} what="the runway" isEmpty={(data) => data.length === 0} empty={NO_FLOWS}>
        {([record]) =>
          record !== undefined && (
            <>
              <Stats>
                <Stat name="Years">
                  <Value of={record.years} as="amount" why={record.text} />
                </Stat>
                <Stat name="Assets without own token">
                  <Value of={record.assets.valueUsd} as="usd" why="No current holdings are known." />
                </Stat>
                <Stat name="Spending, 365 days">
                  <Value of={record.burn.outUsd} as="usd" why={record.text} />
                </Stat>
                <Stat name="Income, 365 days">
                  <Value of={record.burn.inUsd} as="usd" why={record.text} />
                </Stat>
              </Stats>
              <p class="note">{record.text}</p>
            </>
          )
        }
      </Shown>
    </Card>
  )
}

/** Explorers of chains by their EIP-155 number. */
const EXPLORERS: Readonly<Record<number, string>> = {
  1: 'https://etherscan.io',
  10: 'https://optimistic.etherscan.io',
  56: 'https://bscscan.com',
  137: 'https://polygonscan.com',
  8453: 'https://basescan.org',
  42161: 'https://arbiscan.io',
  43114: 'https://snowscan.xyz',
}

/** The short form of a hash or address, linked to its page at the explorer of its chain if one is known. */
function AtExplorer({ explorer, path, text }: { explorer: string | undefined; path: string; text: string }) {
  const short = <code title={text}>{toShort(text)}</code>
  return explorer === undefined ? (
    short
  ) : (
    <a href={`${explorer}/${path}/${text}`} rel="noreferrer">
      {short}
    </a>
  )
}

type Payment = Answer<'/data/daos/treasury/flows'>[number]

const VALUE: Column<{ readonly valueUsd: number | null }> = {
  title: 'Value',
  isNumber: true,
  cell: ({ valueUsd }) => <Value of={valueUsd} as="usd" why={NO_PRICE} />,
}
const QUANTITY: Column<Payment> = {
  title: 'Quantity',
  isNumber: true,
  isWide: true,
  cell: ({ quantity, symbol }) => (
    <>
      <Value of={quantity} as="amount" why="The contract has no decimals." /> {symbol}
    </>
  ),
}

/** The largest payments of a treasury, with links to their transactions and proposals. */
export function LargestPayments({ id, most = MOST }: { id: string; most?: number }) {
  const query = { id, kind: 'spending', sort: '-valueUsd', limit: most } as const
  const question = toQuestion('/data/daos/treasury/flows', query)
  const payments = useAnswer(question)
  const chains = useAnswer(toQuestion('/data/chains', {})).received?.data
  const explorerOf = (chain: string) => EXPLORERS[chains?.find(({ _id }) => _id === chain)?.chainId ?? 0]
  if (isNone(payments)) return null
  const to: Column<Payment> = {
    title: 'To',
    isWide: true,
    cell: ({ counterparty, counterpartyLabel, chain }) =>
      counterpartyLabel ?? <AtExplorer explorer={explorerOf(chain)} path="address" text={counterparty} />,
  }
  return (
    <Card title="Largest payments" question={question} facts={payments.received?.facts}>
      <Shown of={payments} what="payments" rows={most}>
        {(data) => (
          <RecordTable
            caption="Largest payments"
            records={data}
            keyOf={({ _id }) => _id}
            columns={[
              stacked({ title: 'Day', cell: ({ recordedAt }) => <DayValue at={recordedAt} /> }, to, 'to'),
              to,
              stacked(VALUE, QUANTITY),
              QUANTITY,
              {
                title: 'Category',
                cell: ({ category }) =>
                  category ?? <Unknown why="The operator’s file has no category for the recipient." />,
              },
              {
                title: 'Proposal',
                cell: ({ dao, proposal }) =>
                  proposal === null ? (
                    <Unknown why="No known proposal." />
                  ) : (
                    <a href={`daos/${dao}/proposals/${proposal}`}>proposal</a>
                  ),
              },
              {
                title: 'Transaction',
                cell: ({ transactionHash, chain }) => (
                  <AtExplorer explorer={explorerOf(chain)} path="tx" text={transactionHash} />
                ),
              },
            ]}
          />
        )}
      </Shown>
    </Card>
  )
}

/** The addresses that a treasury paid most, or that paid it most. */
function Counterparties({ id, direction, title }: { id: string; direction: 'in' | 'out'; title: string }) {
  const query = { id, direction, kind: direction === 'in' ? 'income' : 'spending', limit: MOST } as const
  const question = toQuestion('/data/daos/treasury/flows/counterparties', query)
  const addresses = useAnswer(question)
  if (isNone(addresses)) return null
  return (
    <Card title={title} question={question} facts={addresses.received?.facts}>
      <Shown of={addresses} what="addresses" rows={MOST}>
        {(data) => (
          <RecordTable
            caption={title}
            records={data}
            keyOf={({ counterparty }) => counterparty}
            columns={[
              {
                title: 'Address',
                cell: ({ counterparty, counterpartyLabel }) =>
                  counterpartyLabel ?? <code title={counterparty}>{toShort(counterparty)}</code>,
              },
              VALUE,
              {
                title: 'Transfers',
                isNumber: true,
                isWide: true,
                cell: ({ transfers }) => <Value of={transfers} as="count" />,
              },
              { title: 'Last', cell: ({ lastAt }) => <DayValue at={lastAt} /> },
            ]}
          />
        )}
      </Shown>
    </Card>
  )
}

/** Income, spending and runway of a treasury. */
export function TreasuryFlows({ id, name }: { id: string; name: string }) {
  return (
    <>
      <Runway id={id} />
      <FlowHistory id={id} name={name} />
      <LargestPayments id={id} />
      <div class="grid">
        <Counterparties id={id} direction="out" title="Paid most" />
        <Counterparties id={id} direction="in" title="Received most from" />
      </div>
    </>
  )
}
