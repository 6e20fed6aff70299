import { useAnswer } from '../answers.ts'
import { useStart } from '../clock.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { toDrawing } from '../parts/drawing.ts'
import { SeriesChart } from '../parts/series-chart.tsx'
import { isNone, Shown } from '../parts/shown.tsx'
import { Change, TimeValue, Value } from '../parts/value.tsx'

const SUMS = [
  ['Fees, 24 hours', 'fees24h'],
  ['Fees, 7 days', 'fees7d'],
  ['Fees, 30 days', 'fees30d'],
  ['Revenue, 24 hours', 'revenue24h'],
  ['Revenue, 7 days', 'revenue7d'],
  ['Revenue, 30 days', 'revenue30d'],
] as const

const CHANGES = [
  ['Change, 24 hours', 'percentChange24h'],
  ['Change, 7 days', 'percentChange7d'],
  ['Change, 30 days', 'percentChange30d'],
] as const

function Summary({ id }: { id: string }) {
  const question = toQuestion('/data/daos/fees', { id: [id] })
  const fees = useAnswer(question)
  const empty = 'No fees of this DAO are collected.'
  return (
    <Card title="Fees and revenue" question={question} facts={fees.received?.facts}>
      <Shown of={fees} what="fees" isEmpty={(data) => data.length === 0} empty={empty}>
        {([record]) =>
          record !== undefined && (
            <Stats>
              {SUMS.map(([name, member]) => (
                <Stat key={member} name={name}>
                  <Value of={record.feesData[member]} as="usd" />
                </Stat>
              ))}
              {CHANGES.map(([name, member]) => (
                <Stat key={member} name={name}>
                  <Change of={record.feesData[member]} />
                </Stat>
              ))}
              <Stat name="Until">
                <TimeValue at={record.feesData.lastUpdated} />
              </Stat>
            </Stats>
          )
        }
      </Shown>
    </Card>
  )
}

type Points = Answer<'/data/daos/fees/historic'>

const toLines = (points: Points) =>
  toDrawing<Points[number]>(points, {
    as: 'usd',
    at: ({ recordedAt }) => recordedAt,
    lines: [
      ['fees', ({ feesUsd }) => feesUsd],
      ['revenue', ({ revenueUsd }) => revenueUsd],
    ],
  })

/** The fees of 90 days; nothing for a DAO without fees. */
export function FeesHistory({ id, name }: { id: string; name: string }) {
  const start = useStart('90d', '1d')
  const question = toQuestion('/data/daos/fees/historic', { id, start, interval: '1d', order: 'asc', fill: 'null' })
  const series = useAnswer(question)
  if (isNone(series)) return null
  return (
    <SeriesChart
      title="Fees over time"
      name={`${name}: fees and revenue, 90 days`}
      question={question}
      series={series}
      toDrawing={toLines}
      isLow
    />
  )
}

/** Fees that users pay to a DAO's protocols, and their revenue: sums and history. */
export function Fees({ id, name }: { id: string; name: string }) {
  return (
    <div class="column">
      <Summary id={id} />
      <FeesHistory id={id} name={name} />
    </div>
  )
}
