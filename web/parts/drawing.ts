import { type Kind, toDistinct, toText, toUtc } from '../format.ts'

/** A named line: a value at each time, null where nothing was observed. */
export interface Line {
  readonly name: string
  readonly values: readonly (number | null)[]
}

/** The marks of events: something that happened, missing data, and history that was filled or corrected. */
export const MARKS = { event: '▲', gap: '▬', change: '◆' } as const

/** Something about a time or a range of a chart: a mark on its time axis. */
export interface ChartEvent {
  /** Unix seconds; the start of a range. */
  readonly time: number
  /** The end of a range, exclusive; undefined for a moment. */
  readonly until?: number
  /** Default: `event`. */
  readonly mark?: keyof typeof MARKS
  readonly text: string
  /** Address of its page. */
  readonly to?: string
}

/**
 * The content of a chart. Candles have four lines: open, high, low, close. The first line of a stack is the total, and
 * the others are its parts, drawn as areas on top of each other. The last line of flows is drawn over the others, which
 * are bars: positive ones above zero and negative ones below it.
 */
export interface Drawing {
  readonly kind: 'line' | 'stack' | 'bars' | 'flows' | 'candles'
  /** Whether the horizontal axis has times or ranks: the value at rank 10 is that of the ten largest together. */
  readonly axis?: 'time' | 'rank'
  /** Unix seconds, or ranks from 1. */
  readonly times: readonly number[]
  readonly lines: readonly Line[]
  readonly as: Kind
  readonly events?: readonly ChartEvent[]
}

/** Whether a chart has coloured lines with a key. */
export const hasLines = ({ kind }: Drawing) => kind === 'line' || kind === 'stack' || kind === 'flows'

/** Whether a line is drawn as bars. */
export const isBars = ({ kind, lines }: Drawing, line: number) =>
  kind === 'bars' || (kind === 'flows' && line < lines.length - 1)

/** Converts points to a drawing that starts at the first known value. */
export function toDrawing<T>(
  points: readonly T[],
  options: {
    readonly kind?: Drawing['kind']
    readonly as: Kind
    readonly at: (point: T) => string
    readonly lines: readonly (readonly [name: string, value: (point: T) => number | null | undefined])[]
  },
): Drawing {
  const hasValue = (point: T) => options.lines.some(([, value]) => (value(point) ?? null) !== null)
  const first = points.findIndex(hasValue)
  const shown = first < 0 ? [] : points.slice(first)
  return {
    kind: options.kind ?? 'line',
    as: options.as,
    times: shown.map((point) => Date.parse(options.at(point)) / 1000),
    lines: options.lines.map(([name, value]) => ({ name, values: shown.map((point) => value(point) ?? null) })),
  }
}

/** The newest observation of a series whose buckets begin with older ones. */
export interface Newest {
  readonly at: string | null | undefined
  /** The value of each line. */
  readonly values: readonly (number | null)[]
}

/** The same drawing with the newest observation as its last point, unless it has none or ends with that time. */
export function endWith(drawing: Drawing, newest: Newest | undefined): Drawing {
  const [last, time] = [drawing.times.at(-1), Date.parse(newest?.at ?? '') / 1000]
  const values = newest?.values ?? []
  if (last === undefined || !(time > last) || !values.some((value) => value !== null)) return drawing
  return {
    ...drawing,
    times: [...drawing.times, time],
    lines: drawing.lines.map(({ name, values: before }, at) => ({ name, values: [...before, values[at] ?? null] })),
  }
}

/** Number of missing values per line. The four lines of candles have the same observations and count as one. */
function countMissing({ kind, lines }: Drawing) {
  const counted = kind === 'candles' ? lines.slice(-1) : lines
  return counted.map(({ name, values }) => ({ name, missing: values.filter((value) => value === null).length }))
}

/** Describes the number of known points per line; `absent` describes missing points that the answer omits. */
export function describeDrawing(drawing: Drawing, absent = ''): string {
  const points = drawing.times.length
  const counts = countMissing(drawing)
  const gaps = counts.filter(({ missing }) => missing > 0)
  const isOne = counts.length === 1
  if (drawing.axis === 'rank') return `From left to right: the 1 to ${points} largest together.`
  if (gaps.length === 0 && points === 1) return absent || '1 point of data so far.'
  if (gaps.length === 0) return absent || `${points} points, no gaps.`
  const said = gaps.map(({ name, missing }) => (isOne ? String(missing) : `${missing} of ${name}`)).join(', ')
  const range = isOne ? `${said} of ${points} points missing.` : `Missing of ${points} points: ${said}.`
  return absent === '' ? range : `${absent} ${range}`
}

/** Formats a position on the horizontal axis: a rank, or a time in Unix seconds. */
export function toAxisText({ axis }: Drawing, place: number | undefined): string {
  if (place === undefined) return ''
  return axis === 'rank' ? `Largest ${toText(place, 'count')}` : toUtc(new Date(place * 1000))
}

/** Adds up values, largest first: how much the largest ones have together. An unknown value is left out. */
export function toConcentration(
  values: readonly (number | null)[],
  { name, as }: { readonly name: string; readonly as: Kind },
): Drawing {
  let sum = 0
  const sums = values
    .filter((value) => value !== null)
    .sort((a, b) => b - a)
    .map((value) => {
      sum += value
      // Further digits would be artefacts of the addition.
      return Number(sum.toPrecision(12))
    })
  return { kind: 'line', axis: 'rank', as, times: sums.map((_, at) => at + 1), lines: [{ name, values: sums }] }
}

/** The smallest and the largest value of a line; undefined if no value is known. */
function toExtent({ values }: Line): readonly [low: number, high: number] | undefined {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const value of values) {
    if (value === null) continue
    low = Math.min(low, value)
    high = Math.max(high, value)
  }
  return low > high ? undefined : [low, high]
}

/** The smallest relevant difference on a line: a hundredth of its value range, rounded to a power of ten. */
export function toStep(line: Line): number {
  const [low, high] = toExtent(line) ?? [0, 0]
  return 10 ** Math.floor(Math.log10((high - low) / 100))
}

export const markOf = ({ mark = 'event' }: ChartEvent) => MARKS[mark]

const overlaps = ({ time, until }: ChartEvent, from: number, to: number) =>
  time < to && (until === undefined ? time >= from : until > from)

/** The end of the step of a point. */
const endOf = ({ times }: Drawing, at: number) => {
  const from = times[at] ?? Number.NaN
  return times[at + 1] ?? from + (from - (times[at - 1] ?? from))
}

/** Whether a change covers the whole range. Such a change needs no mark on the axis. */
const isEverywhere = ({ time, until, mark }: ChartEvent, first: number, last: number) =>
  mark === 'change' && time <= first && (until ?? time) >= last

/** The events in the range of a chart. */
export const eventsIn = (drawing: Drawing): readonly ChartEvent[] => {
  const { times, events = [] } = drawing
  const [first, last] = [times[0], times.at(-1)]
  if (first === undefined || last === undefined) return []
  const end = endOf(drawing, times.length - 1)
  return events.filter((event) => overlaps(event, first, end) && !isEverywhere(event, first, last))
}

/** The events from a point until the next one; after the last point, for as long as one step. */
const eventsAt = (drawing: Drawing, at: number): readonly ChartEvent[] => {
  const from = drawing.times[at]
  if (from === undefined) return []
  return eventsIn(drawing).filter((event) => overlaps(event, from, endOf(drawing, at)))
}

/** The texts of one point: its time, the value of each line with its unit, and its events. */
export function toPointTexts(drawing: Drawing, at: number) {
  const { times, lines, as } = drawing
  return {
    time: toAxisText(drawing, times[at]),
    values: lines.map((line) => {
      const value = line.values[at] ?? null
      return { name: line.name, text: value === null ? 'not known' : toDistinct(value, as, toStep(line)) }
    }),
    events: eventsAt(drawing, at).map((event) => ({ mark: markOf(event), text: event.text })),
  }
}

/** Describes one point. */
export function describePoint(drawing: Drawing, at: number): string {
  const { time, values, events } = toPointTexts(drawing, at)
  return [
    `${time}: ${values.map(({ name, text }) => `${name} ${text}`).join(', ')}`,
    ...events.map(({ text }) => text),
  ].join('. ')
}

/** A text alternative of a chart for screen readers. */
export function describe(name: string, drawing: Drawing): string {
  const { times, lines, as } = drawing
  const said = lines.map((line) => {
    const extent = toExtent(line)
    const values = line.values.filter((value) => value !== null)
    const [first, last] = [values[0], values.at(-1)]
    if (extent === undefined || first === undefined || last === undefined) return `${line.name}: not known`
    const step = toStep(line)
    const [a, b, c, d] = [first, last, ...extent].map((value) => toDistinct(value, as, step))
    return `${line.name}: first ${a}, last ${b}, lowest ${c}, highest ${d}`
  })
  const range =
    drawing.axis === 'rank'
      ? `Ranks 1 to ${times.length}`
      : `${times.length} points from ${toAxisText(drawing, times[0])} to ${toAxisText(drawing, times.at(-1))}`
  const counts = countMissing(drawing).map(({ name, missing }, _at, all) =>
    all.length === 1 ? `${missing} without a value` : `${missing} without a value of ${name}`,
  )
  return `${name}. ${range}, ${counts.join(', ')}. ${said.join('. ')}.`
}

/** Merges several drawings of one line each: all their times, null where a line has no value. */
export function toOverlay(
  drawings: readonly { readonly name: string; readonly drawing: Drawing }[],
  as: Kind,
): Drawing {
  const times = [...new Set(drawings.flatMap(({ drawing }) => drawing.times))].sort((a, b) => a - b)
  return {
    kind: 'line',
    as,
    times,
    lines: drawings.map(({ name, drawing }) => {
      const [line] = drawing.lines
      const byTime = new Map(drawing.times.map((time, at) => [time, line?.values[at] ?? null]))
      return { name, values: times.map((time) => byTime.get(time) ?? null) }
    }),
  }
}

/** The same drawing with each line starting at 100. */
export const fromHundred = (drawing: Drawing): Drawing => ({
  ...drawing,
  as: 'amount',
  lines: drawing.lines.map(({ name, values }) => {
    const first = values.find((value) => value !== null && value !== 0) ?? null
    return { name, values: values.map((value) => (value === null || first === null ? null : (value / first) * 100)) }
  }),
})
