import { INTERVAL_SECONDS } from '../../shared/intervals.ts'

interface SparkPoint {
  /** Unix milliseconds. */
  readonly at: number
  readonly value: number
}

const MARGIN = 4

/** Colours that can be told from a light and from a dark background (a contrast of 4.5 and more). */
const THEMES = {
  light: { rising: '#15803d', falling: '#b91c1c', text: '#6b7280' },
  dark: { rising: '#4ade80', falling: '#f87171', text: '#9ca3af' },
} as const

export const THEME_NAMES = Object.keys(THEMES) as [keyof typeof THEMES, ...(keyof typeof THEMES)[]]

/** How large an image is, in pixels, and on what it stands. */
export interface Look {
  readonly width: number
  readonly height: number
  readonly theme: keyof typeof THEMES
}

/** A text as it may stand in an element or an attribute. */
export const toXml = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

const svg = ({ width, height }: Look, label: string, content: string) =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${toXml(label)}">${content}</svg>\n`

const round = (value: number) => Number(value.toFixed(2))

/** Maps [from, to] onto [start, end]; everything to the middle where there is no extent. */
function scale(from: number, to: number, start: number, end: number): (value: number) => number {
  if (to === from) return () => round((start + end) / 2)
  return (value) => round(start + ((value - from) / (to - from)) * (end - start))
}

/** Prices come every five minutes: between points farther apart than two of these is a time without data. */
const MOST_APART_MS = 2 * INTERVAL_SECONDS['5m'] * 1000

/** Points in order as runs without a gap. */
function toRuns(points: readonly SparkPoint[]): SparkPoint[][] {
  const runs: SparkPoint[][] = []
  for (const point of points) {
    const run = runs.at(-1)
    const before = run?.at(-1)
    if (run === undefined || before === undefined || point.at - before.at > MOST_APART_MS) runs.push([point])
    else run.push(point)
  }
  return runs
}

/**
 * A line of the last 24 hours as an SVG that stands alone: no script, no font, no other file. The width is the whole
 * day, so that a gap shows as one; a flat line runs through the middle, one point alone is a dot. The colour is that of
 * `change`, in percent, or of the line itself where it is null.
 */
export function toSparkline(
  title: string,
  {
    points,
    change,
    range,
  }: { points: readonly SparkPoint[]; change: number | null; range: { from: number; to: number } },
  look: Look,
): string {
  const { width, height } = look
  const theme = THEMES[look.theme]
  const [first, last] = [points[0], points.at(-1)]
  if (first === undefined || last === undefined) {
    const text = `<text x="${width / 2}" y="${height / 2 + 4}" text-anchor="middle" font-size="12" fill="${theme.text}">no data</text>`
    return svg(look, `${title}: no data in the last 24 hours`, text)
  }
  const values = points.map(({ value }) => value)
  const x = scale(range.from, range.to, MARGIN, width - MARGIN)
  const y = scale(Math.min(...values), Math.max(...values), height - MARGIN, MARGIN)
  const colour = (change ?? last.value - first.value) < 0 ? theme.falling : theme.rising
  const radius = points.length === 1 ? 2.5 : 1.25
  const toDot = ({ at, value }: SparkPoint) => `<circle cx="${x(at)}" cy="${y(value)}" r="${radius}" fill="${colour}"/>`
  const toLine = (run: readonly SparkPoint[]) => {
    const line = run.map(({ at, value }) => `${x(at)},${y(value)}`).join(' ')
    return `<polyline points="${line}" fill="none" stroke="${colour}" stroke-width="1.5" stroke-linejoin="round"/>`
  }
  const drawn = toRuns(points).flatMap((run) => (run.length === 1 ? run.map(toDot) : [toLine(run)]))
  return svg(look, `${title}: the last 24 hours`, drawn.join(''))
}
