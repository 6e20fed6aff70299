import { useAnswer } from '../answers.ts'
import { useStart } from '../clock.ts'
import { toShort } from '../format.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { toConcentration, toDrawing } from '../parts/drawing.ts'
import { RecordTable } from '../parts/record-table.tsx'
import { SeriesChart } from '../parts/series-chart.tsx'
import { isNone, Shown } from '../parts/shown.tsx'
import { Value } from '../parts/value.tsx'

const NO_HOLDERS = 'No provider reports the holders of this token.'
const MOST = 15

function Now({ id, symbol }: { id: string; symbol: string }) {
  const question = toQuestion('/data/tokens/holders', { id: [id] })
  const holders = useAnswer(question)
  return (
    <Card title="Holders" question={question} facts={holders.received?.facts}>
      <Shown of={holders} what="holders" isEmpty={(data) => data.length === 0} empty={NO_HOLDERS}>
        {([record]) =>
          record !== undefined && (
            <>
              <Stats>
                <Stat name="Addresses">
                  <Value of={record.holdersData.totalHolders} as="count" />
                </Stat>
                <Stat name="Held by the largest 100">
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
                  {
                    title: 'Value',
                    isNumber: true,
                    isWide: true,
                    cell: ({ amountUsd }) => <Value of={amountUsd} as="usd" />,
                  },
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

type HolderRecords = Answer<'/data/tokens/holders'>

const toCurve = ([record]: HolderRecords) =>
  toConcentration(record?.holdersData.topHolders.map(({ share }) => share) ?? [], {
    ...{ name: 'share of the supply', as: 'percent' },
  })

/** How much of the supply the largest holders have together. */
function Concentration({ id, symbol }: { id: string; symbol: string }) {
  const question = toQuestion('/data/tokens/holders', { id: [id] })
  const holders = useAnswer(question)
  if (isNone(holders)) return null
  return (
    <SeriesChart
      title="Supply held by the largest holders"
      name={`${symbol}: share of the supply that the largest holders have together`}
      question={question}
      series={holders}
      toDrawing={toCurve}
      isLow
    />
  )
}

type Points = Answer<'/data/tokens/holders/historic'>

const toLines = (points: Points) =>
  toDrawing<Points[number]>(points, {
    as: 'count',
    at: ({ recordedAt }) => recordedAt,
    lines: [['addresses', ({ totalHolders }) => totalHolders]],
  })

function History({ id, symbol }: { id: string; symbol: string }) {
  const start = useStart('90d', '1d')
  const query = { id, start, interval: '1d', order: 'asc', fill: 'null' } as const
  const question = toQuestion('/data/tokens/holders/historic', query)
  return (
    <SeriesChart
      title="Holders over time"
      name={`${symbol}: addresses that hold it, 90 days`}
      question={question}
      series={useAnswer(question)}
      toDrawing={toLines}
      isLow
    />
  )
}

/** The holders of a token, now and over time. */
export function Holders({ id, symbol }: { id: string; symbol: string }) {
  return (
    <div class="column">
      <Now id={id} symbol={symbol} />
      <Concentration id={id} symbol={symbol} />
      <History id={id} symbol={symbol} />
    </div>
  )
}
