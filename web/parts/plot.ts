import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { toMark, toUtc } from '../format.ts'
import { drawCandles } from './candles.ts'
import type { Drawing } from './drawing.ts'
import { type Origin, toPicture } from './picture.ts'

const DAY = 86_400
const UTC = { timeZone: 'UTC' } as const
const HOURS = new Intl.DateTimeFormat('en-GB', { ...UTC, hour: '2-digit', minute: '2-digit' })
const DAYS = new Intl.DateTimeFormat('en-GB', { ...UTC, day: 'numeric', month: 'short' })
const MONTHS = new Intl.DateTimeFormat('en-GB', { ...UTC, month: 'short', year: 'numeric' })

function toTick(seconds: number, step: number): string {
  const at = new Date(seconds * 1000)
  if (step >= 28 * DAY) return MONTHS.format(at)
  return step >= DAY || seconds % DAY === 0 ? DAYS.format(at) : HOURS.format(at)
}

/** Width of the longest axis label in pixels: a digit has about seven. */
const toWidth = (marks: readonly string[] | null) =>
  Math.max(70, 14 + 7 * Math.max(0, ...(marks ?? []).map(({ length }) => length)))

/** Points between two gaps, which no line connects: without dots they would be invisible. */
function toAlone(values: readonly (number | null)[]): number[] {
  const alone: number[] = []
  values.forEach((value, at) => {
    if (value !== null && (values[at - 1] ?? null) === null && (values[at + 1] ?? null) === null) alone.push(at)
  })
  return alone
}

export interface Plot {
  /** Draws newer points of the same lines. A zoomed view stays while it contains points. */
  show(drawing: Drawing): void
  /** Puts the cursor on a point, or hides it. */
  point(at: number | undefined): void
  /** The current view as a picture with its title, its range and its source. */
  toPicture(title: string, origin: Origin): Promise<Blob>
  remove(): void
}

const colorsOf = (element: Element) => {
  const style = getComputedStyle(element)
  const color = (name: string) => style.getPropertyValue(name).trim()
  return {
    text: style.color,
    grid: color('--grid'),
    back: color('--chart-back'),
    lines: ['--line-1', '--line-2', '--line-3', '--line-4', '--line-5', '--line-6'].map(color),
    up: color('--up'),
    down: color('--down'),
  }
}

/** In the library's form: null for none. */
const toPoints = (alone: number[]) => (alone.length === 0 ? null : alone)

const toData = ({ times, lines }: Drawing) => [times, ...lines.map(({ values }) => values)] as UPlot.AlignedData
const toAllAlone = ({ kind, lines }: Drawing) => lines.map(({ values }) => (kind === 'line' ? toAlone(values) : []))

type Colors = ReturnType<typeof colorsOf>

function toSeries(drawing: Drawing, colors: Colors, aloneOf: (line: number) => number[]): UPlot.Series[] {
  return drawing.lines.map(({ name }, index) => {
    const stroke = colors.lines[index % colors.lines.length] ?? colors.text
    const bars = UPlot.paths.bars?.({ size: [0.8, 40] })
    return {
      label: name,
      stroke,
      spanGaps: false,
      width: drawing.kind === 'candles' ? 0 : 1.5,
      ...(drawing.kind === 'bars' ? { fill: stroke, ...(bars === undefined ? {} : { paths: bars }) } : {}),
      ...(drawing.kind === 'candles' ? { paths: () => null } : {}),
      points: { show: false, size: 4, fill: stroke, filter: () => toPoints(aloneOf(index)) },
    }
  })
}

/** The time range in view, and the key of the lines. */
function toWords(plot: UPlot, { kind, lines }: Drawing, colors: Colors) {
  const { min, max } = plot.scales.x ?? {}
  const [from, to] = [min, max].map((seconds) => toUtc(new Date((seconds ?? 0) * 1000)))
  const key = lines.map(({ name }, at) => ({ name, color: colors.lines[at % colors.lines.length] ?? colors.text }))
  return { range: `${from} – ${to}`, key: kind === 'line' && key.length > 1 ? key : [] }
}

/** Draws into an element; `onPoint` receives the point under the cursor. Missing values are gaps. */
export function draw(element: HTMLElement, drawing: Drawing, onPoint: (at: number | undefined) => void): Plot {
  const colors = colorsOf(element)
  let shown = drawing
  let alone = toAllAlone(drawing)
  const axis = { stroke: colors.text, grid: { stroke: colors.grid, width: 1 }, ticks: { show: false } }
  const plot = new UPlot(
    {
      width: element.clientWidth,
      height: element.clientHeight,
      legend: { show: false },
      cursor: { y: false, points: { size: 7 } },
      tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
      scales: { y: drawing.kind === 'bars' ? { range: { min: { soft: 0, mode: 1 }, max: { pad: 0.1 } } } : {} },
      series: [{}, ...toSeries(drawing, colors, (line) => alone[line] ?? [])],
      axes: [
        { ...axis, size: 32, values: (_plot, splits, _axis, _space, step) => splits.map((at) => toTick(at, step)) },
        {
          ...axis,
          size: (_plot, marks) => toWidth(marks),
          values: (_plot, splits, _axis, _space, step) => splits.map((value) => toMark(value, drawing.as, step)),
        },
      ],
      hooks: {
        setCursor: [({ cursor: { idx } }) => onPoint(idx ?? undefined)],
        ...(drawing.kind === 'candles' ? { draw: [(self: UPlot) => drawCandles(self, colors)] } : {}),
      },
    },
    toData(drawing),
    element,
  )
  const sized = new ResizeObserver(() => {
    if (element.clientWidth !== plot.width || element.clientHeight !== plot.height)
      plot.setSize({ width: element.clientWidth, height: element.clientHeight })
  })
  sized.observe(element)
  /** Whether only a part is in view, and the new points have values in it. */
  const isInView = (next: Drawing) => {
    const { min, max } = plot.scales.x ?? {}
    if (min == null || max == null) return false
    const [first, last] = [shown.times[0] ?? min, shown.times.at(-1) ?? max]
    return (min > first || max < last) && next.times.some((time) => time >= min && time <= max)
  }
  return {
    show: (next) => {
      const isVisible = isInView(next)
      shown = next
      alone = toAllAlone(next)
      plot.setData(toData(next), !isVisible)
      if (isVisible) plot.redraw()
    },
    point: (at) => {
      const time = at === undefined ? undefined : shown.times[at]
      plot.setCursor({ left: time === undefined ? -10 : plot.valToPos(time, 'x'), top: 0 })
    },
    toPicture: (title, origin) =>
      toPicture(plot.ctx.canvas, { title, ...origin, ...toWords(plot, shown, colors) }, colors, UPlot.pxRatio),
    remove: () => {
      sized.disconnect()
      plot.destroy()
    },
  }
}
