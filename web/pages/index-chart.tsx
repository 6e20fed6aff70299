import { useAnswer } from '../answers.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Choice } from '../parts/choice.tsx'
import { toDrawing } from '../parts/drawing.ts'
import { SeriesChart } from '../parts/series-chart.tsx'
import { INTERVALS, type Range } from '../ranges.ts'
import { RangeChoice, useRange } from './price-chart.tsx'

type Points = Answer<'/data/index/historic'>

/** The value of the Index over the range in the address. */
export function IndexChart({ usual }: { usual: Range }) {
  const { range, interval, isOff, start } = useRange(usual)
  const question = toQuestion('/data/index/historic', { start, interval, order: 'asc', fill: 'null' }, range)
  return (
    <SeriesChart
      title="Value of the Index"
      name={`The Index, ${range} by ${interval}`}
      question={question}
      series={useAnswer(question)}
      toDrawing={(points: Points) =>
        toDrawing<Points[number]>(points, {
          as: 'usd',
          at: ({ createdAt }) => createdAt,
          lines: [['value', ({ valueUsd }) => valueUsd]],
        })
      }
      controls={
        <div class="choices">
          <RangeChoice range={range} />
          <Choice
            name="interval"
            label="Interval"
            options={INTERVALS.map((value) => ({ value, text: value, isOff: isOff(value) }))}
            value={interval}
          />
        </div>
      }
    />
  )
}
