import { describe, expect, it } from 'vitest'
import { toSparkline } from '../../api/routes/charts/sparkline.ts'

const range = { from: 0, to: 100 }

describe('the 24-hour chart', () => {
  it('spans the day and its values', () => {
    const svg = toSparkline(
      'Uniswap',
      [
        { at: 0, value: 1 },
        { at: 100, value: 3 },
      ],
      range,
    )
    expect(svg).toContain('points="4,60 236,4"')
    expect(svg).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" [^>]*viewBox/)
    expect(svg).not.toMatch(/<script|href|font-family/)
  })

  it('runs through the middle when nothing moves', () => {
    const flat = [0, 50, 100].map((at) => ({ at, value: 7 }))
    expect(toSparkline('Flat', flat, range)).toContain('points="4,32 120,32 236,32"')
  })

  it('shows one point as a dot and none in words', () => {
    expect(toSparkline('One', [{ at: 50, value: 1 }], range)).toContain('<circle cx="120" cy="32"')
    expect(toSparkline('None', [], range)).toContain('no data')
  })

  it('tells a fall from a rise by colour', () => {
    const line = (a: number, b: number) =>
      toSparkline(
        'x',
        [
          { at: 0, value: a },
          { at: 1, value: b },
        ],
        range,
      )
    expect(/stroke="([^"]+)"/.exec(line(1, 2))?.[1]).not.toBe(/stroke="([^"]+)"/.exec(line(2, 1))?.[1])
  })

  it('escapes the name', () => {
    expect(toSparkline('<b>"&', [], range)).toContain('&lt;b&gt;&quot;&amp;')
  })
})
