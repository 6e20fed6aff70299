import { INTERVAL_SECONDS } from '../../shared/intervals.ts'

interface SparkPoint {
  /** Unix milliseconds. */
  readonly at: number
  readonly value: number
}

const MARGIN = 4

/** Colours readable on the light or dark background (a contrast of at least 4.5). */
const THEMES = {
  light: { rising: '#15803d', falling: '#b91c1c', text: '#6b7280' },
  dark: { rising: '#4ade80', falling: '#f87171', text: '#9ca3af' },
} as const

export const THEME_NAMES = Object.keys(THEMES) as [keyof typeof THEMES, ...(keyof typeof THEMES)[]]

/** Size of an image in pixels, and the theme of its background. */
export interface ImageStyle {
  readonly width: number
  readonly height: number
  readonly theme: keyof typeof THEMES
}

/** Escapes text for an element or an attribute. */
export const toXml = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

const svg = ({ width, height }: ImageStyle, label: string, content: string) =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${toXml(label)}">${content}</svg>\n`

const round = (value: number) => Number(value.toFixed(2))

/** Maps [from, to] to [start, end]; if from equals to, maps everything to the middle. */
function scale(from: number, to: number, start: number, end: number): (value: number) => number {
  if (to === from) return () => round((start + end) / 2)
  return (value) => round(start + ((value - from) / (to - from)) * (end - start))
}

/** Prices have a cadence of five minutes: a distance of more than two intervals between points is a gap. */
const MAX_DISTANCE_MS = 2 * INTERVAL_SECONDS['5m'] * 1000

/** Splits ordered points into runs without a gap. */
function toRuns(points: readonly SparkPoint[]): SparkPoint[][] {
  const runs: SparkPoint[][] = []
  for (const point of points) {
    const run = runs.at(-1)
    const before = run?.at(-1)
    if (run === undefined || before === undefined || point.at - before.at > MAX_DISTANCE_MS) runs.push([point])
    else run.push(point)
  }
  return runs
}

/**
 * Draws a line of the last 24 hours as a self-contained SVG: no script, no font, no other file. The width is always 24
 * hours, so that gaps are visible. A flat line runs through the middle, a single point is a dot. The colour derives
 * from `change` (percent), or from the line itself if `change` is null.
 */
export function toSparkline(
  title: string,
  {
    points,
    change,
    range,
  }: { points: readonly SparkPoint[]; change: number | null; range: { from: number; to: number } },
  style: ImageStyle,
): string {
  const { width, height } = style
  const theme = THEMES[style.theme]
  const [first, last] = [points[0], points.at(-1)]
  if (first === undefined || last === undefined) {
    const text = `<text x="${width / 2}" y="${height / 2 + 4}" text-anchor="middle" font-size="12" fill="${theme.text}">no data</text>`
    return svg(style, `${title}: no data in the last 24 hours`, text)
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
  return svg(style, `${title}: the last 24 hours`, drawn.join(''))
}
