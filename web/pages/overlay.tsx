import { useMemo, useRef } from 'preact/hooks'
import { useAnswers } from '../answers.ts'
import type { Answer, Path, Question } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import { Chart } from '../parts/chart.tsx'
import { Choice, chosen } from '../parts/choice.tsx'
import { type Drawing, fromHundred, toOverlay } from '../parts/drawing.ts'
import { OpenAs } from '../parts/open-as.tsx'
import { Failed } from '../parts/shown.tsx'
import type { Range } from '../ranges.ts'
import { RangeChoice } from './price-chart.tsx'

/** Name of a record without a known name. */
export const NAMELESS = 'not known'
const SCALES = ['hundred', 'absolute'] as const

/**
 * One line per answer in one chart. The compared records are its key. New points replace the previous ones when all
 * answers have arrived.
 */
export function Overlay<P extends Path>(props: {
  questions: readonly Question<P>[]
  names: readonly string[]
  toLine: (data: Answer<P>) => Drawing
  range: Range
}) {
  const { questions, names, toLine, range } = props
  const answers = useAnswers(questions)
  const scale = chosen('scale', SCALES, 'hundred')
  const isWaiting = answers.some(({ received, failure }) => received === undefined && failure === undefined)
  const about = questions.map((question) => question.about).join(' ')
  const shown = useRef<{ about: string; range: Range; data: (Answer<P> | undefined)[] }>({ about, range, data: [] })
  if (!isWaiting) {
    const earlier = shown.current.about === about ? shown.current.data : []
    shown.current = { about, range, data: answers.map(({ received }, at) => received?.data ?? earlier[at]) }
  }
  const available = shown.current.data
  const isAnyAvailable = available.some((data) => data !== undefined)
  const drawing = useMemo(() => {
    const lines = available.flatMap((data, at) =>
      data === undefined ? [] : [{ name: names[at] ?? NAMELESS, drawing: toLine(data) }],
    )
    const overlay = toOverlay(lines, 'usd')
    return scale === 'hundred' ? fromHundred(overlay) : overlay
  }, [...available, names.join(' '), scale])
  return (
    <Card
      title="Compared"
      controls={
        <div class="choices">
          <RangeChoice range={range} />
          <Choice
            name="scale"
            label="Scale"
            options={[
              { value: 'hundred', text: 'Start = 100' },
              { value: 'absolute', text: 'US dollars' },
            ]}
            value={scale}
          />
        </div>
      }
    >
      {answers.map(
        ({ failure, retry }, at) =>
          failure !== undefined && (
            <Failed key={questions[at]?.url} failure={failure} retry={retry} of={names[at] ?? NAMELESS} />
          ),
      )}
      {isWaiting && !isAnyAvailable && (
        <p class="state loading" role="status">
          Loading…
        </p>
      )}
      {isAnyAvailable && (
        <div class="shown" aria-busy={isWaiting}>
          <Chart name={`${names.join(', ')}, ${shown.current.range}`} drawing={drawing} />
        </div>
      )}
      <div class="links">
        {questions.map((question, at) => (
          <OpenAs key={question.url} question={question} name={names[at] ?? NAMELESS} />
        ))}
      </div>
    </Card>
  )
}
