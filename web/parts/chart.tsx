import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { toUtc } from '../format.ts'
import { isEmbed } from '../place.ts'
import { theme } from '../theme.ts'
import { Cited, cite, citedPoint, type ToOrigin } from './cite.tsx'
import {
  type Drawing,
  describe,
  describeDrawing,
  describePoint,
  eventsIn,
  hasLines,
  isBars,
  markOf,
  toAxisText,
  toPointTexts,
  toStep,
} from './drawing.ts'
import { NotLoaded } from './late.tsx'
import { PictureButtons } from './picture-buttons.tsx'
import type { draw, Plot } from './plot.ts'
import { RecordTable } from './record-table.tsx'
import { Value } from './value.tsx'

/** Maximum rows of a chart's table; the CSV has all. */
const MOST_ROWS = 500

/** Maximum rows of a chart's list of events. */
const MOST_EVENTS = 50

function AsTable({ name, drawing }: { name: string; drawing: Drawing }) {
  const { times, lines, as, axis } = drawing
  const isRanked = axis === 'rank'
  const places = times.map((_, at) => at)
  const records = (isRanked ? places : places.reverse()).slice(0, MOST_ROWS)
  return (
    <>
      <RecordTable
        caption={isRanked ? name : `${name}, newest first`}
        records={records}
        keyOf={(at) => at}
        columns={[
          { title: isRanked ? 'Rank' : 'Time', cell: (at) => toAxisText(drawing, times[at]) },
          ...lines.map((line) => {
            const step = toStep(line)
            return {
              title: line.name,
              isNumber: true,
              cell: (at: number) => <Value of={line.values[at]} as={as} step={step} why="No data." />,
            }
          }),
        ]}
      />
      {times.length > MOST_ROWS && (
        <p class="note">
          The {isRanked ? 'first' : 'newest'} {MOST_ROWS} points. “Open as” has all of them.
        </p>
      )}
    </>
  )
}

/** The cursor position after a key; undefined if the key has no function. */
export function toNext(key: string, at: number, last: number): number | undefined {
  const steps: Record<string, number> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }
  const next = steps[key]
  return next === undefined ? undefined : Math.min(last, Math.max(0, next))
}

/** The part of the view that remains after a key; undefined if the key does not zoom. */
const ZOOMS: Readonly<Record<string, number>> = { '+': 0.5, '-': 2, Escape: Number.POSITIVE_INFINITY }

/** The events in the range, newest first, with links to their pages. */
function Events({ drawing }: { drawing: Drawing }) {
  const events = useMemo(() => eventsIn(drawing).toSorted((a, b) => b.time - a.time), [drawing])
  // Events may follow while the page is open, and must not move the buttons beside them.
  if (events.length === 0) return drawing.events === undefined ? null : <span class="events" />
  return (
    <details class="drop events">
      {/* A new number is a new element, so nothing moves. */}
      <summary title="Events in the range">
        <span key={events.length}>
          ▲ {events.length}
          <span class="word"> {events.length === 1 ? 'event' : 'events'}</span>
        </span>
      </summary>
      <ul class="menu">
        {events.slice(0, MOST_EVENTS).map((event, at) => (
          // Events of one time may have the same text.
          <li key={at}>
            <span aria-hidden="true">{markOf(event)}</span> <small>{toUtc(new Date(event.time * 1000))}</small>{' '}
            {event.to === undefined ? event.text : <a href={event.to}>{event.text}</a>}
          </li>
        ))}
        {events.length > MOST_EVENTS && <li>{events.length - MOST_EVENTS} earlier events are only marked.</li>}
      </ul>
    </details>
  )
}

/** Whether a line has one point: axes around it would show a range that has no data. */
const isLone = (drawing: Drawing) => hasLines(drawing) && !isBars(drawing, 0) && drawing.times.length === 1

/** Loads the chart library with the first chart; an error is shown instead of the chart. */
function usePlot(name: string, drawing: Drawing, cited: number | undefined, on: Parameters<typeof draw>[2]) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<Plot | undefined>(undefined)
  const newest = useRef(drawing)
  newest.current = drawing
  const [failure, fail] = useState<string | undefined>(undefined)
  const colors = theme.value
  const lines = drawing.lines.map(({ name }) => name).join('\n')
  const isDrawn = drawing.times.length > 0 && !isLone(drawing)
  // Another name, or other lines or colours, create a new chart; newer points update the existing one.
  useEffect(() => {
    if (!isDrawn) return
    const unmounted = new AbortController()
    import('./plot.ts').then(
      ({ draw }) => {
        if (place.current === null || unmounted.signal.aborted) return
        plot.current = draw(place.current, newest.current, on)
        place.current.dataset.drawn = 'true'
        place.current.dataset.theme = colors
        if (cited === undefined || cited < 0) return
        place.current.scrollIntoView({ block: 'center' })
        // The scales are set in a microtask of the library.
        queueMicrotask(() => plot.current?.point(cited))
      },
      (error: unknown) => fail(error instanceof Error ? error.message : String(error)),
    )
    return () => {
      unmounted.abort()
      plot.current?.remove()
      plot.current = undefined
      on.onZoom(false)
    }
  }, [name, drawing.kind, drawing.as, lines, isDrawn, colors])
  useEffect(() => plot.current?.show(drawing), [drawing])
  return { place, plot, failure }
}

/** A click that moves the pointer further, in pixels, selects a range. */
const MOST_MOVED = 4

/**
 * A chart with a text for the point under the cursor, controlled by mouse or arrow keys, and with a table. Dragging and the
 * keys + and - zoom, Escape shows the whole range. A click or Enter puts the point into the address, to cite it.
 */
export function Chart(props: {
  name: string
  drawing: Drawing
  isLow?: boolean
  /** Whether the newest value stands above the chart. */
  hasLead?: boolean
  /** Describes the missing points. */
  absent?: string | undefined
  toOrigin?: ToOrigin
}) {
  const { name, drawing, isLow = false, hasLead = false, absent } = props
  const [at, setAt] = useState<number | undefined>(undefined)
  const [isTable, setTable] = useState(false)
  const [isPart, setPart] = useState(false)
  const cited = citedPoint(name, drawing)
  const pressed = useRef(0)
  const { place, plot, failure } = usePlot(name, drawing, cited, { onPoint: setAt, onZoom: setPart })
  const [words, description] = useMemo(
    () => [describe(name, drawing), describeDrawing(drawing, absent)],
    [name, drawing, absent],
  )
  const last = drawing.times.length - 1
  const here = Math.min(at ?? last, last)
  const isAlone = isLow && !hasLead && drawing.axis !== 'rank'
  const hasKey = hasLines(drawing) && (drawing.lines.length > 1 || isAlone)
  const citePoint = () => {
    if (!isEmbed && at !== undefined && drawing.axis !== 'rank') cite(name, drawing.times[at])
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter') return citePoint()
    const part = event.ctrlKey || event.metaKey ? undefined : ZOOMS[event.key]
    if (part !== undefined) {
      event.preventDefault()
      plot.current?.zoom(part)
      if (event.key === 'Escape') plot.current?.point(undefined)
      return
    }
    const next = toNext(event.key, at ?? last + 1, last)
    if (next === undefined) return
    event.preventDefault()
    setAt(next)
    plot.current?.point(next)
  }
  if (last < 0) return <p class="state empty">No data in this range.</p>
  if (failure !== undefined) return <NotLoaded what="chart" why={failure} />
  return (
    <>
      <div class="chart-box" hidden={isTable}>
        {isLone(drawing) ? (
          // As high as the chart that follows with the second point.
          <div key="lone" class={isLow ? 'chart-space low' : 'chart-space'}>
            <p class="state empty">A line needs two points, and this range has one.</p>
          </div>
        ) : (
          <div
            key="plot"
            class={isLow ? 'chart low' : 'chart'}
            ref={place}
            role="img"
            aria-label={absent === undefined ? words : `${words} ${absent}`}
            // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys move its cursor.
            tabIndex={0}
            onKeyDown={onKeyDown}
            onPointerDown={({ clientX }) => {
              pressed.current = clientX
            }}
            onClick={({ clientX }) => Math.abs(clientX - pressed.current) < MOST_MOVED && citePoint()}
          />
        )}
        {isPart && (
          <button
            type="button"
            class="reset"
            onClick={() => {
              plot.current?.zoom()
              // The button disappears.
              place.current?.focus()
            }}
          >
            Reset zoom
          </button>
        )}
        {hasKey && (
          <ul class="key">
            {toPointTexts(drawing, here).values.map(({ name, text }) => (
              <li key={name}>
                {name} <b aria-hidden="true">{text}</b>
              </li>
            ))}
          </ul>
        )}
        {/* The key has the same values, and a low chart stands below its newest value. */}
        <output class={hasKey || isLow ? 'point hidden' : 'point'} aria-live="polite">
          {describePoint(drawing, here)}
        </output>
      </div>
      {isTable && <AsTable name={name} drawing={drawing} />}
      {cited !== undefined && !isEmbed && <Cited {...{ name, drawing, at: cited, toOrigin: props.toOrigin }} />}
      <div class="chart-foot">
        {/* The end of the text may be cut off. */}
        <p class="note known" title={description}>
          {description}
        </p>
        <span class="chart-buttons">
          <Events drawing={drawing} />
          <button type="button" class="plain" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
            Table
          </button>
          {!isTable && (
            <span class={isLone(drawing) ? 'reserved' : ''}>
              <PictureButtons name={name} take={(origin) => plot.current?.toPicture(name, origin)} />
            </span>
          )}
        </span>
      </div>
    </>
  )
}
