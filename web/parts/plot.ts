import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { toDayOfYear, toHour, toMark, toMonth } from '../format.ts'
import { drawCandles } from './candles.ts'
import { type ChartEvent, type Drawing, eventsIn, hasLines, isBars, toAxisText, toPointTexts } from './drawing.ts'
import { type Origin, toPicture } from './picture.ts'

const DAY = 86_400
/** Distances of the marks on the axis of daily values: whole days, months of 30 days and years. */
const DAILY = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 30, 60, 90, 120, 180, 365, 730, 1825].map((days) => days * DAY)

function toTick(seconds: number, step: number): string {
  const at = new Date(seconds * 1000)
  if (step >= 28 * DAY) return toMonth(at)
  return step >= DAY || seconds % DAY === 0 ? toDayOfYear(at) : toHour(at)
}

/** Width of the longest axis label in pixels: a digit has about seven. Eight digits always fit, so new values move nothing. */
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

/** Whether no two values are of one day. */
const isDaily = ({ axis, times }: Drawing) =>
  axis !== 'rank' && times.every((time, at) => at === 0 || time - (times[at - 1] ?? time) >= DAY)

export interface Plot {
  /** Draws newer points of the same lines. A zoomed view is kept while it contains points. */
  show(drawing: Drawing): void
  /** Puts the cursor on a point, or hides it. */
  point(at: number | undefined): void
  /** Shows this part of the current range, around the cursor; without a part, the whole range. */
  zoom(part?: number): void
  /** The current view as a picture with its title, its range and its source. */
  toPicture(title: string, origin: Origin): Promise<Blob>
  remove(): void
}

const colorsOf = (element: Element) => {
  const style = getComputedStyle(element)
  const color = (name: string) => style.getPropertyValue(name).trim()
  return {
    text: style.color,
    axis: color('--axis'),
    font: style.fontFamily,
    grid: color('--grid'),
    back: color('--chart-back'),
    lines: ['--line-1', '--line-2', '--line-3', '--line-4', '--line-5', '--line-6'].map(color),
    up: color('--up'),
    down: color('--down'),
  }
}

/** In the library's form: null for none. */
const toPoints = (alone: number[]) => (alone.length === 0 ? null : alone)

/** The values of each line; of a stack, the sums of each part and those below it: null if one of them is unknown. */
function toValues({ kind, times, lines }: Drawing): (readonly (number | null)[])[] {
  const [total, ...parts] = lines
  if (kind !== 'stack' || total === undefined) return lines.map(({ values }) => values)
  let sums: readonly (number | null)[] = times.map(() => 0)
  const stacked = parts.map(({ values }) => {
    sums = sums.map((below, at) => {
      const value = values[at] ?? null
      return below === null || value === null ? null : below + value
    })
    return sums
  })
  return [total.values, ...stacked]
}

const toData = (drawing: Drawing) => [drawing.times, ...toValues(drawing)] as UPlot.AlignedData
const toAllAlone = (drawing: Drawing) =>
  toValues(drawing).map((values, line) => (hasLines(drawing) && !isBars(drawing, line) ? toAlone(values) : []))

/** A computed colour, `rgb(r, g, b)`, with an opacity. */
const withOpacity = (color: string, opacity: number) => color.replace('rgb(', 'rgba(').replace(')', `, ${opacity})`)

/** Fades out to the time axis. */
function toGradient({ ctx, bbox }: UPlot, color: string): CanvasGradient {
  const gradient = ctx.createLinearGradient(0, bbox.top, 0, bbox.top + bbox.height)
  gradient.addColorStop(0, withOpacity(color, 0.2))
  gradient.addColorStop(1, withOpacity(color, 0))
  return gradient
}

/** The area below a lone line, below the lowest part of a stack, and of bars. */
function toFill(drawing: Drawing, line: number, color: string): Pick<UPlot.Series, 'fill'> {
  const { kind, lines } = drawing
  if (isBars(drawing, line)) return { fill: color }
  if (kind === 'line' && lines.length === 1) return { fill: (plot) => toGradient(plot, color) }
  return kind === 'stack' && line === 1 ? { fill: withOpacity(color, 0.3) } : {}
}

/** The areas between the parts of a stack. */
const toBands = ({ kind, lines }: Drawing, colors: Colors): UPlot.Band[] =>
  kind === 'stack'
    ? lines.slice(2).map((_, part) => ({
        series: [part + 3, part + 2],
        fill: withOpacity(colors.lines[part + 2] ?? colors.text, 0.3),
      }))
    : []

type Colors = ReturnType<typeof colorsOf>

function toSeries(drawing: Drawing, colors: Colors, aloneOf: (line: number) => number[]): UPlot.Series[] {
  return drawing.lines.map(({ name }, index) => {
    const stroke = colors.lines[index % colors.lines.length] ?? colors.text
    const bars = UPlot.paths.bars?.({ size: [0.8, 40] })
    return {
      label: name,
      stroke,
      spanGaps: false,
      // The line of a stack's total is the upper edge of its last part.
      width: drawing.kind === 'candles' || (drawing.kind === 'stack' && index === drawing.lines.length - 1) ? 0 : 1.5,
      ...toFill(drawing, index, stroke),
      ...(isBars(drawing, index) && bars !== undefined ? { paths: bars } : {}),
      ...(drawing.kind === 'candles' ? { paths: () => null } : {}),
      points: { show: false, size: 4, fill: stroke, filter: () => toPoints(aloneOf(index)) },
    }
  })
}

const EVENT_SIZE = 5

/**
 * Marks each event on the time axis: a moment with a triangle and a thin line, a gap with a bar, changed history with a
 * thin bar that begins with a diamond.
 */
function drawEvents(plot: UPlot, drawing: Drawing, color: string): void {
  const { ctx, bbox } = plot
  const size = EVENT_SIZE * UPlot.pxRatio
  const [right, bottom] = [bbox.left + bbox.width, bbox.top + bbox.height]
  const toX = (time: number) => Math.round(plot.valToPos(time, 'x', true))
  const fill = (...[first, ...rest]: readonly (readonly [x: number, y: number])[]) => {
    ctx.beginPath()
    if (first !== undefined) ctx.moveTo(...first)
    for (const point of rest) ctx.lineTo(...point)
    ctx.fill()
  }
  const drawRange = ({ time, mark }: ChartEvent, until: number) => {
    const [from, to] = [Math.max(bbox.left, toX(time)), Math.min(right, toX(until))]
    if (to < bbox.left || from > right) return
    const height = mark === 'gap' ? size : size / 3
    ctx.fillRect(from, bottom - height, Math.max(1, to - from), height)
    if (mark !== 'gap')
      fill(
        [from, bottom - 1.6 * size],
        [from + 0.8 * size, bottom - 0.8 * size],
        [from, bottom],
        [from - 0.8 * size, bottom - 0.8 * size],
      )
  }
  ctx.save()
  ctx.fillStyle = color
  for (const event of eventsIn(drawing)) {
    if (event.until !== undefined) {
      drawRange(event, event.until)
      continue
    }
    const x = toX(event.time)
    if (x < bbox.left || x > right) continue
    ctx.globalAlpha = 0.25
    ctx.fillRect(x, bbox.top, 1, bbox.height)
    ctx.globalAlpha = 1
    fill([x, bottom - 1.6 * size], [x + size, bottom], [x - size, bottom])
  }
  ctx.restore()
}

const MOST_EVENTS = 4
const TIP_DISTANCE = 12

/** The text of the point under the cursor, beside the cursor. The chart announces the same text, so this one is hidden. */
function createTip(plot: UPlot, colors: Colors) {
  const tip = document.createElement('div')
  tip.className = 'tip'
  tip.ariaHidden = 'true'
  tip.hidden = true
  plot.over.append(tip)
  const add = (className: string, ...content: (string | Node)[]) => {
    const row = document.createElement('div')
    row.className = className
    row.append(...content)
    tip.append(row)
  }
  return (drawing: Drawing) => {
    const { idx, left = -1 } = plot.cursor
    tip.hidden = idx == null || left < 0
    if (idx == null || tip.hidden) return
    const { time, values, events } = toPointTexts(drawing, idx)
    tip.replaceChildren()
    add('time', time)
    values.forEach(({ name, text }, at) => {
      const dash = document.createElement('i')
      if (hasLines(drawing) && values.length > 1) dash.style.background = colors.lines[at % colors.lines.length] ?? ''
      const value = document.createElement('b')
      value.append(text)
      add('value', dash, name, value)
    })
    for (const { mark, text } of events.slice(0, MOST_EVENTS)) add('event', `${mark} ${text}`)
    if (events.length > MOST_EVENTS) add('event', `${events.length - MOST_EVENTS} more`)
    const isRight = left + TIP_DISTANCE + tip.offsetWidth > plot.over.clientWidth
    const place = isRight ? left - TIP_DISTANCE - tip.offsetWidth : left + TIP_DISTANCE
    tip.style.left = `${Math.max(0, place)}px`
  }
}

/** The range of the x-axis of bars: half a step more at each end of the points, so that the outer bars are complete. */
function withHalfBars({ data: [times] }: UPlot, min: number, max: number): [number, number] {
  const [first = min, second = first] = times
  const last = times.at(-1) ?? max
  const half = (second - first) / 2
  return [min === first ? min - half : min, max === last ? max + half : max]
}

/** The time range in view, and the key of the lines. */
function toWords(plot: UPlot, drawing: Drawing, colors: Colors) {
  const { min, max } = plot.scales.x ?? {}
  const [first = 0, last = first] = [drawing.times[0], drawing.times.at(-1)]
  const ends = [Math.max(min ?? first, first), Math.min(max ?? last, last)]
  const [from, to] = ends.map((end) => toAxisText(drawing, end))
  const key = drawing.lines.map(({ name }, at) => ({
    name,
    color: colors.lines[at % colors.lines.length] ?? colors.text,
  }))
  return { range: `${from} – ${to}`, key: hasLines(drawing) && key.length > 1 ? key : [] }
}

/**
 * Draws into an element. `onPoint` receives the point under the cursor, and `onZoom` whether only a part of the range is in
 * view. Missing values are gaps.
 */
export function draw(
  element: HTMLElement,
  drawing: Drawing,
  { onPoint, onZoom }: { onPoint: (at: number | undefined) => void; onZoom: (isPart: boolean) => void },
): Plot {
  const colors = colorsOf(element)
  let shown = drawing
  let alone = toAllAlone(drawing)
  const isRanked = drawing.axis === 'rank'
  const axis = { stroke: colors.axis, font: `11px ${colors.font}`, ticks: { show: false } }
  const grid = { stroke: colors.grid, width: 1 }
  let showTip: ((drawing: Drawing) => void) | undefined
  const isPart = ({ scales: { x }, data: [times] }: UPlot) =>
    x?.min != null && x.max != null && (x.min > (times[0] ?? x.min) || x.max < (times.at(-1) ?? x.max))
  const plot = new UPlot(
    {
      width: element.clientWidth,
      height: element.clientHeight,
      legend: { show: false },
      cursor: { y: false, points: { size: 7 } },
      tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
      scales: {
        x: { time: !isRanked, ...(isBars(drawing, 0) ? { range: withHalfBars } : {}) },
        y:
          isBars(drawing, 0) || drawing.kind === 'stack' || isRanked
            ? { range: { min: { soft: 0, mode: 1 }, max: { pad: 0.1 } } }
            : {},
      },
      series: [{}, ...toSeries(drawing, colors, (line) => alone[line] ?? [])],
      bands: toBands(drawing, colors),
      axes: [
        {
          ...axis,
          size: 28,
          grid: { show: false },
          // The width of a month with its year, so that labels do not touch.
          space: 72,
          ...(isDaily(drawing) ? { incrs: DAILY } : {}),
          values: (_plot, splits, _axis, _space, step) =>
            splits.map((at) => (isRanked ? toMark(at, 'count', step) : toTick(at, step))),
        },
        {
          ...axis,
          grid,
          size: (_plot, marks) => toWidth(marks),
          values: (_plot, splits, _axis, _space, step) => splits.map((value) => toMark(value, drawing.as, step)),
        },
      ],
      hooks: {
        setCursor: [
          ({ cursor: { idx } }) => {
            showTip?.(shown)
            onPoint(idx ?? undefined)
          },
        ],
        setScale: [(self, key) => key === 'x' && onZoom(isPart(self))],
        draw: [
          (self: UPlot) => {
            if (shown.kind === 'candles') drawCandles(self, colors)
            drawEvents(self, shown, colors.text)
          },
        ],
      },
    },
    toData(drawing),
    element,
  )
  showTip = createTip(plot, colors)
  const sized = new ResizeObserver(() => {
    // On paper the drawn chart is scaled by its style.
    if (matchMedia('print').matches) return
    if (element.clientWidth !== plot.width || element.clientHeight !== plot.height)
      plot.setSize({ width: element.clientWidth, height: element.clientHeight })
  })
  sized.observe(element)
  /** Whether only a part is in view, and the new points have values in it. */
  const isInView = (next: Drawing) => {
    const { min, max } = plot.scales.x ?? {}
    if (min == null || max == null) return false
    return isPart(plot) && next.times.some((time) => time >= min && time <= max)
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
    zoom: (part) => {
      const { min, max } = plot.scales.x ?? {}
      const [first, last] = [shown.times[0], shown.times.at(-1)]
      if (min == null || max == null || first === undefined || last === undefined) return
      const span = (max - min) * (part ?? Number.POSITIVE_INFINITY)
      if (span >= last - first) return plot.setData(toData(shown), true)
      const time = plot.cursor.idx == null ? undefined : shown.times[plot.cursor.idx]
      const center = time === undefined || time < min || time > max ? (min + max) / 2 : time
      const from = Math.min(Math.max(first, center - span / 2), last - span)
      // At least two points are in view.
      const inView = shown.times.filter((one) => one >= from && one <= from + span)
      if (inView.length > 1) plot.setScale('x', { min: from, max: from + span })
    },
    toPicture: (title, origin) =>
      toPicture(plot.ctx.canvas, { title, ...origin, ...toWords(plot, shown, colors) }, colors, UPlot.pxRatio),
    remove: () => {
      sized.disconnect()
      plot.destroy()
    },
  }
}
