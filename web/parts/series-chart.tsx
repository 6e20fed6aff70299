import type { ComponentChildren } from 'preact'
import { useMemo, useRef } from 'preact/hooks'
import type { AnswerState, ReceivedAnswer } from '../answers.ts'
import type { Question } from '../interface.ts'
import { isEmbed } from '../place.ts'
import { Card } from './card.tsx'
import { Chart } from './chart.tsx'
import { type ChartEvent, type Drawing, endWith, isBars, type Newest } from './drawing.ts'
import { type Embedding, toProvenance } from './open-as.tsx'
import { Shown } from './shown.tsx'

function Drawn<T>(props: {
  name: string
  question: Question
  data: T
  toDrawing: (data: T) => Drawing
  isLow: boolean
  hasLead: boolean
  absent: string | undefined
  events: readonly ChartEvent[] | undefined
  newest: Newest | undefined
}) {
  const { data, name, events, newest } = props
  // `toDrawing` changes only with the name.
  const drawing = useMemo(
    () => ({ ...endWith(props.toDrawing(data), newest), ...(events === undefined ? {} : { events }) }),
    [data, name, events, newest?.at, newest?.values.join()],
  )
  const { isLow, hasLead, absent, question } = props
  return (
    <Chart
      {...{ name, drawing, isLow, hasLead, absent }}
      // A bar is a sum of many values.
      toOrigin={(time) => (isBars(drawing, 0) ? undefined : toProvenance(question, time))}
    />
  )
}

/** A card with a chart of one series of the API. `name` identifies the drawing: another name is another drawing. */
export function SeriesChart<T>(props: {
  title: string
  name: string
  question: Question
  series: AnswerState<T>
  toDrawing: (data: T) => Drawing
  /** For a series with an answer that omits empty buckets: formats the number of omitted buckets. */
  toAbsent?: (missing: number, of: number) => string
  /** A newer observation than the first one of the last bucket: the chart ends with it. */
  newest?: Newest | undefined
  /** The facts of the newest value, if it comes from another answer. */
  facts?: ReceivedAnswer<unknown>['facts'] | undefined
  /** Marked on the time axis. */
  events?: readonly ChartEvent[]
  embedding?: Embedding
  isLow?: boolean
  controls?: ComponentChildren
  children?: ComponentChildren
}) {
  const { title, question, series } = props
  // The previous answer keeps its name until the next one arrives.
  const shown = useRef(props.name)
  if (!series.isBefore) shown.current = props.name
  const name = shown.current
  return (
    <Card
      title={title}
      question={question}
      facts={props.facts ?? series.received?.facts}
      controls={isEmbed ? undefined : props.controls}
      embedding={props.embedding}
    >
      {props.children}
      <div class={props.isLow ? 'drawn low' : 'drawn'}>
        <Shown of={series} what={title.toLowerCase()}>
          {(data, { coarse, points = 0, missing = 0 }) => (
            <>
              <Drawn
                name={name}
                question={question}
                data={data}
                toDrawing={props.toDrawing}
                isLow={props.isLow ?? false}
                hasLead={props.children !== undefined}
                events={props.events}
                newest={props.newest}
                absent={missing > 0 ? props.toAbsent?.(missing, points + missing) : undefined}
              />
              {coarse !== undefined && coarse > 0 && <p class="note">{coarse} points come from coarser data.</p>}
            </>
          )}
        </Shown>
      </div>
    </Card>
  )
}
