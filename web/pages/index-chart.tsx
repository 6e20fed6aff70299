import { useMemo } from 'preact/hooks'
import { useAnswer } from '../answers.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Choice } from '../parts/choice.tsx'
import { type ChartEvent, toDrawing } from '../parts/drawing.ts'
import { SeriesChart } from '../parts/series-chart.tsx'
import { INTERVALS, type Range } from '../ranges.ts'
import { useIndexNow } from './index-now.ts'
import { RangeChoice, useRange } from './price-chart.tsx'

type Points = Answer<'/data/index/historic'>

/** The starts of the Index's compositions, as events of a chart. */
function useCompositions(): readonly ChartEvent[] {
  const { received } = useAnswer(toQuestion('/data/index/compositions', { sort: '-from' }))
  return useMemo(
    () =>
      (received?.data ?? []).map(({ from, elements }) => ({
        time: Date.parse(from) / 1000,
        text: `New composition: ${elements.length} tokens`,
      })),
    [received?.data],
  )
}

/** The value of the Index over the range in the address. */
export function IndexChart({ usual }: { usual: Range }) {
  const { range, interval, isOff, start } = useRange(usual)
  const question = toQuestion('/data/index/historic', { start, interval, order: 'asc', fill: 'null' }, range)
  const newest = useIndexNow()
  return (
    <SeriesChart
      title="Value of the Index"
      name={`The Index, ${range} by ${interval}`}
      question={question}
      series={useAnswer(question)}
      events={useCompositions()}
      newest={{ at: newest.at, values: [newest.valueUsd] }}
      facts={newest.facts}
      embedding={{ path: 'index', query: { range, interval } }}
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
