import type { ComponentChildren } from 'preact'
import { useMemo, useRef } from 'preact/hooks'
import { useAnswers } from '../answers.ts'
import type { Answer, Path, Question } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import { Chart } from '../parts/chart.tsx'
import { type Drawing, fromHundred, toOverlay } from '../parts/drawing.ts'
import { type Embedding, OpenAs } from '../parts/open-as.tsx'
import { Failed } from '../parts/shown.tsx'
import { isEmbed } from '../place.ts'

/** Name of a record without a known name. */
export const NAMELESS = 'not known'

/** A line of an overlay: its name, its request, and the drawing of its answer. */
export interface OverlayLine {
  readonly name: string
  readonly question: Question
  readonly toDrawing: (data: unknown) => Drawing
}

export const toOverlayLine = <P extends Path>(
  name: string,
  question: Question<P>,
  toDrawing: (data: Answer<P>) => Drawing,
): OverlayLine => ({ name, question, toDrawing: toDrawing as OverlayLine['toDrawing'] })

interface ShownLine extends OverlayLine {
  readonly data: unknown
}

/**
 * One line per answer in one chart. New points replace the previous ones when all answers have arrived; a failed answer
 * keeps the previous points of its line.
 */
export function Overlay(props: {
  title: string
  lines: readonly OverlayLine[]
  /** Names the range. */
  range: string
  /** Whether each line starts at 100. */
  isFromHundred: boolean
  controls?: ComponentChildren
  embedding?: Embedding
}) {
  const { lines, range } = props
  const answers = useAnswers(lines.map(({ question }) => question))
  const isWaiting = answers.some(({ received, failure }) => received === undefined && failure === undefined)
  const shown = useRef<{ range: string; lines: readonly ShownLine[] }>({ range, lines: [] })
  if (!isWaiting) {
    const before = shown.current.lines
    const next = lines.map((line, at) => {
      const earlier = before.find(({ question }) => question.about === line.question.about)?.data
      return { ...line, data: answers[at]?.received?.data ?? earlier }
    })
    shown.current = { range, lines: next.filter(({ data }) => data !== undefined) }
  }
  const available = shown.current.lines
  const names = available.map(({ name }) => name)
  const drawing = useMemo(() => {
    const drawn = available.map(({ name, data, toDrawing }) => ({ name, drawing: toDrawing(data) }))
    const overlay = toOverlay(drawn, 'usd')
    return props.isFromHundred ? fromHundred(overlay) : overlay
  }, [available.length, ...available.map(({ data }) => data), names.join(' '), props.isFromHundred])
  return (
    <Card title={props.title} controls={isEmbed ? undefined : props.controls} embedding={props.embedding}>
      {answers.map(
        ({ failure, retry }, at) =>
          failure !== undefined && (
            <Failed key={lines[at]?.question.url} failure={failure} retry={retry} of={lines[at]?.name ?? NAMELESS} />
          ),
      )}
      {isWaiting && available.length === 0 && (
        <p class="state loading" role="status">
          Loading…
        </p>
      )}
      {available.length > 0 && (
        <div class="shown" aria-busy={isWaiting}>
          <Chart name={`${names.join(', ')}, ${shown.current.range}`} drawing={drawing} />
        </div>
      )}
      <div class="links">
        {lines.map(({ name, question }) => (
          <OpenAs key={question.url} question={question} name={name} />
        ))}
      </div>
    </Card>
  )
}
