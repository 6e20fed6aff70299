import { useAnswer } from '../answers.ts'
import { now, useStart } from '../clock.ts'
import { toShort } from '../format.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { toDrawing } from '../parts/drawing.ts'
import { type Column, RecordTable, stacked } from '../parts/record-table.tsx'
import { SeriesChart } from '../parts/series-chart.tsx'
import { Shown } from '../parts/shown.tsx'
import { DayValue, TimeValue, Value } from '../parts/value.tsx'

const NO_TRADES = 'No trades of this token are collected.'

type DexData = Answer<'/data/tokens/dex-data'>[number]['dexData']

const HOUR_MS = 3_600_000

/** Text, days and member of each period. */
const PERIODS = [
  ['24 hours', 1, 'amountUsd24h'],
  ['7 days', 7, 'amountUsd7d'],
  ['30 days', 30, 'amountUsd30d'],
  ['All stored', Number.POSITIVE_INFINITY, 'amountUsdMax'],
] as const

/** The first stored trades of the last 30 days; undefined if it is not known. */
function useStoredSince(id: string): string | undefined {
  const coverage = useAnswer(toQuestion('/data/status/coverage', { dataset: 'dex-trades', id }))
  return coverage.received?.data.find(({ state }) => state === 'covered')?.from
}

/** Sums by period. A period that begins before the stored trades has their start. */
const FlowTable = ({ data, since }: { data: DexData; since: string | undefined }) => (
  <RecordTable
    caption="Bought and sold on decentralized exchanges"
    records={PERIODS}
    keyOf={([text]) => text}
    columns={[
      {
        title: 'Period',
        cell: ([text, days]) => (
          <>
            {text}
            {/* Coverage is in whole hours, and a sum ends with the newest trade. */}
            {since !== undefined && Date.parse(since) - (now.value - days * 24 * HOUR_MS) > HOUR_MS && (
              <small>
                {' '}
                (since <DayValue at={since} />)
              </small>
            )}
          </>
        ),
      },
      { title: 'Bought', isNumber: true, cell: ([, , member]) => <Value of={data.inflow[member]} as="usd" /> },
      { title: 'Sold', isNumber: true, cell: ([, , member]) => <Value of={data.outflow[member]} as="usd" /> },
    ]}
  />
)

function Summary({ id }: { id: string }) {
  const question = toQuestion('/data/tokens/dex-data', { id: [id] })
  const flows = useAnswer(question)
  const since = useStoredSince(id)
  return (
    <Card title="Decentralized exchanges" question={question} facts={flows.received?.facts}>
      <Shown of={flows} what="flows" isEmpty={(data) => data.length === 0} empty={NO_TRADES}>
        {([record]) =>
          record !== undefined && (
            <>
              <Stats>
                <Stat name="Trades">
                  <Value of={record.dexData.totalTrades} as="count" />
                </Stat>
                <Stat name="Traders">
                  <Value of={record.dexData.totalTakers} as="count" />
                </Stat>
                <Stat name="Pools">
                  <Value of={record.dexData.totalMakers} as="count" />
                </Stat>
                <Stat name="Exchanges">
                  <Value of={record.dexData.totalDexs} as="count" />
                </Stat>
              </Stats>
              <FlowTable data={record.dexData} since={since} />
            </>
          )
        }
      </Shown>
    </Card>
  )
}

const PRICE: Column<Answer<'/data/tokens/historic-dex-trades'>[number]> = {
  title: 'Price',
  isNumber: true,
  isWide: true,
  cell: ({ price }) => <Value of={price} as="usd" />,
}

function Trades({ id }: { id: string }) {
  const question = toQuestion('/data/tokens/historic-dex-trades', { id, limit: 10 })
  const trades = useAnswer(question)
  return (
    <Card title="Newest trades" question={question} facts={trades.received?.facts}>
      <Shown of={trades} what="trades" isEmpty={(data) => data.length === 0} empty={NO_TRADES}>
        {(data) => (
          <RecordTable
            caption="Newest trades"
            records={data}
            keyOf={({ _id }) => _id}
            columns={[
              { title: 'Time', cell: ({ recordedAt }) => <TimeValue at={recordedAt} /> },
              { title: 'Type', cell: ({ type }) => type },
              stacked(
                { title: 'Value', isNumber: true, cell: ({ amountUsd }) => <Value of={amountUsd} as="usd" /> },
                PRICE,
                'at',
              ),
              PRICE,
              {
                title: 'Transaction',
                cell: ({ transactionHash }) => <code title={transactionHash}>{toShort(transactionHash)}</code>,
              },
            ]}
          />
        )}
      </Shown>
    </Card>
  )
}

type DexCandle = Answer<'/data/tokens/historic-dex-ohlcv'>['data'][number]

function Volume({ id, name }: { id: string; name: string }) {
  const start = useStart('30d', '1d')
  const question = toQuestion('/data/tokens/historic-dex-ohlcv', { id, interval: '1d', start })
  const toBars = (answer: Answer<'/data/tokens/historic-dex-ohlcv'>) =>
    toDrawing<DexCandle>(answer.data, {
      kind: 'bars',
      as: 'usd',
      at: ({ timestamp }) => timestamp,
      lines: [['Volume', ({ volumeUsd }) => volumeUsd]],
    })
  return (
    <SeriesChart
      title="DEX volume per day"
      name={`${name}: volume on decentralized exchanges, 30 days`}
      question={question}
      series={useAnswer(question)}
      toDrawing={toBars}
      toAbsent={(missing, of) => `${missing} of ${of} days have no stored trade.`}
      isLow
    />
  )
}

/** Purchases and sales of a token on decentralized exchanges. */
export function Flows({ id, name }: { id: string; name: string }) {
  return (
    <div class="column">
      <Summary id={id} />
      <Volume id={id} name={name} />
      <Trades id={id} />
    </div>
  )
}
