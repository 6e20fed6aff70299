import { describe, expect, it } from 'vitest'
import { type ImageStyle, toSparkline } from '../../api/svg/sparkline.ts'

const range = { from: 0, to: 100 }
const USUAL: ImageStyle = { width: 240, height: 64, theme: 'light' }

type Point = readonly [at: number, value: number]
const draw = (title: string, points: readonly Point[], change: number | null = null, scan = USUAL, within = range) =>
  toSparkline(title, { points: points.map(([at, value]) => ({ at, value })), change, range: within }, scan)
const colourOf = (svg: string) => /stroke="(?<colour>[^"]+)"/.exec(svg)?.groups?.colour

describe('toSparkline', () => {
  it('scales to the range of times and values', () => {
    const svg = draw('Uniswap', [
      [0, 1],
      [100, 3],
    ])
    expect(svg).toContain('points="4,60 236,4"')
    expect(svg).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" [^>]*viewBox/)
    expect(svg).not.toMatch(/<script|href|font-family/)
  })

  it('draws constant values in the middle', () => {
    const flat = [0, 50, 100].map((at): Point => [at, 7])
    expect(draw('Flat', flat)).toContain('points="4,32 120,32 236,32"')
  })

  it('draws one point as a dot and writes "no data" without points', () => {
    expect(draw('One', [[50, 1]])).toContain('<circle cx="120" cy="32"')
    expect(draw('None', [])).toContain('no data')
  })

  it('draws a gap for missing data, and a dot for a single point between gaps', () => {
    const minutes = [0, 5, 14, 60, 120, 125, 240]
    const points = minutes.map((at): Point => [at * 60_000, at])
    const svg = draw('Gaps', points, null, USUAL, { from: 0, to: 240 * 60_000 })
    const lines = [...svg.matchAll(/points="([^"]+)"/g)].map(([, line = '']) =>
      line.split(' ').map((one) => one.split(',')[0]),
    )
    expect(lines).toEqual([
      ['4', '8.83', '17.53'],
      ['120', '124.83'],
    ])
    expect([...svg.matchAll(/<circle cx="([^"]+)"/g)].map(([, x]) => x)).toEqual(['62', '236'])
  })

  it('uses the colour of the given change, or of the line if the change is null', () => {
    const [up, down]: Point[][] = [
      [
        [0, 1],
        [1, 2],
      ],
      [
        [0, 2],
        [1, 1],
      ],
    ]
    const [rising, falling] = [colourOf(draw('x', up ?? [])), colourOf(draw('x', down ?? []))]
    expect(rising).not.toBe(falling)
    expect(colourOf(draw('x', up ?? [], -0.1))).toBe(falling)
    expect(colourOf(draw('x', down ?? [], 0.1))).toBe(rising)
  })

  it('uses the requested size and theme', () => {
    const points: Point[] = [
      [0, 1],
      [100, 3],
    ]
    const svg = draw('x', points, null, { width: 100, height: 20, theme: 'dark' })
    expect(svg).toContain('width="100" height="20" viewBox="0 0 100 20"')
    expect(svg).toContain('points="4,16 96,4"')
    expect(colourOf(svg)).not.toBe(colourOf(draw('x', points)))
  })

  it('escapes the name', () => {
    expect(draw('<b>"&', [])).toContain('&lt;b&gt;&quot;&amp;')
  })
})
