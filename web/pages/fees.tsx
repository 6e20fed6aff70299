import { useAnswer } from '../answers.ts'
import { useStart } from '../clock.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { toDrawing } from '../parts/drawing.ts'
import { RecordTable } from '../parts/record-table.tsx'
import { SeriesChart } from '../parts/series-chart.tsx'
import { isNone, Shown } from '../parts/shown.tsx'
import { Change, TimeValue, Value } from '../parts/value.tsx'

const PERIODS = [
  ['24 hours', 'fees24h', 'revenue24h'],
  ['7 days', 'fees7d', 'revenue7d'],
  ['30 days', 'fees30d', 'revenue30d'],
] as const

const CHANGES = [
  ['1 day earlier', 'percentChange24h'],
  ['7 days earlier', 'percentChange7d'],
  ['30 days earlier', 'percentChange30d'],
] as const

type Sums = Answer<'/data/daos/fees'>[number]['feesData']

const SumTable = ({ of }: { of: Sums }) => (
  <RecordTable
    caption="Fees and revenue by period"
    records={PERIODS}
    keyOf={([period]) => period}
    columns={[
      { title: 'Period', cell: ([period]) => period },
      { title: 'Fees', isNumber: true, cell: ([, fees]) => <Value of={of[fees]} as="usd" /> },
      { title: 'Revenue', isNumber: true, cell: ([, , revenue]) => <Value of={of[revenue]} as="usd" /> },
    ]}
  />
)

/** How the fees of the newest day differ from those of an earlier day, which is no change of the sums above. */
const DayChanges = ({ of }: { of: Sums }) => (
  <>
    <h3>Fees of the newest day, compared with a day</h3>
    <Stats>
      {CHANGES.map(([text, member]) => (
        <Stat key={member} name={text}>
          <Change of={of[member]} />
        </Stat>
      ))}
    </Stats>
  </>
)

function Summary({ id }: { id: string }) {
  const question = toQuestion('/data/daos/fees', { id: [id] })
  const fees = useAnswer(question)
  const empty = 'No fees of this DAO are collected.'
  return (
    <Card title="Fees and revenue" question={question} facts={fees.received?.facts}>
      <Shown of={fees} what="fees" isEmpty={(data) => data.length === 0} empty={empty}>
        {([record]) =>
          record !== undefined && (
            <>
              <SumTable of={record.feesData} />
              <p class="note">
                Sums until <TimeValue at={record.feesData.lastUpdated} />.
              </p>
              <DayChanges of={record.feesData} />
            </>
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
