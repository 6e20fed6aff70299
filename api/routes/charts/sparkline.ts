interface SparkPoint {
  /** Unix milliseconds. */
  readonly at: number
  readonly value: number
}

const WIDTH = 240
const HEIGHT = 64
const MARGIN = 4
const RISING = '#15803d'
const FALLING = '#b91c1c'

/** A text as it may stand in an element or an attribute. */
export const toXml = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

const svg = (label: string, content: string) =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${toXml(label)}">${content}</svg>\n`

const round = (value: number) => Number(value.toFixed(2))

/** Maps [from, to] onto [start, end]; everything to the middle where there is no extent. */
function scale(from: number, to: number, start: number, end: number): (value: number) => number {
  if (to === from) return () => round((start + end) / 2)
  return (value) => round(start + ((value - from) / (to - from)) * (end - start))
}

/**
 * A line of the last 24 hours as an SVG that stands alone: no script, no font, no other file. The width is the whole
 * day, so that a gap shows as one; a flat line runs through the middle, one point is a dot.
 */
export function toSparkline(title: string, points: readonly SparkPoint[], range: { from: number; to: number }): string {
  const [first, last] = [points[0], points.at(-1)]
  if (first === undefined || last === undefined) {
    const text = `<text x="${WIDTH / 2}" y="${HEIGHT / 2 + 4}" text-anchor="middle" font-size="12" fill="#6b7280">no data</text>`
    return svg(`${title}: no data in the last 24 hours`, text)
  }
  const values = points.map(({ value }) => value)
  const x = scale(range.from, range.to, MARGIN, WIDTH - MARGIN)
  const y = scale(Math.min(...values), Math.max(...values), HEIGHT - MARGIN, MARGIN)
  const colour = last.value < first.value ? FALLING : RISING
  const label = `${title}: the last 24 hours`
  if (points.length === 1)
    return svg(label, `<circle cx="${x(first.at)}" cy="${y(first.value)}" r="2.5" fill="${colour}"/>`)
  const line = points.map(({ at, value }) => `${x(at)},${y(value)}`).join(' ')
  return svg(
    label,
    `<polyline points="${line}" fill="none" stroke="${colour}" stroke-width="1.5" stroke-linejoin="round"/>`,
  )
}
